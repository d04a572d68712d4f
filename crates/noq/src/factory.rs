//! What noq asks for a controller of each path.

use std::sync::Arc;
use std::time::Instant;

use noq_proto::congestion::{Controller, ControllerFactory};
use trimtab_stack::{Handle, Pacing, Paths, Stack, Traits};

use crate::controller::PathController;

/// noq, as [`Config`](crate::Config) takes it: its pacer obeys a controller's rate.
#[derive(Clone, Debug)]
pub enum Noq {}

impl Stack for Noq {
    type Factory = TrimtabFactory;
    const TRAITS: &'static Traits =
        &Traits { pacing: Pacing::ByRate, own: "noq_proto::congestion::CubicConfig" };
}

/// Makes the congestion controllers of a connection's paths
/// ([`Config::connection`](trimtab_stack::Config::connection)).
///
/// noq has one controller per path. A connection that moves to another address gets a fresh one
/// (RFC 9000 §9.4), which begins with the scheme and the factors that were set last.
#[derive(Debug)]
pub struct TrimtabFactory {
    paths: Paths,
}

impl TrimtabFactory {
    /// A handle to all paths that this factory made or will make.
    pub fn handle(&self) -> Handle {
        self.paths.handle()
    }
}

impl From<Paths> for TrimtabFactory {
    fn from(paths: Paths) -> Self {
        Self { paths }
    }
}

impl ControllerFactory for TrimtabFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(PathController(self.paths.build(now, current_mtu)))
    }
}

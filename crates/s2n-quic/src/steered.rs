//! The paths of a connection.

use std::sync::Arc;
use std::time::Instant;

use trimtab_stack::{Handle, Pacing, Paths, SharedPath, Stack, Traits};

/// s2n-quic, as [`Config`](crate::Config) takes it: it asks a controller when the next packet may
/// leave.
#[derive(Clone, Debug)]
pub enum S2nQuic {}

impl Stack for S2nQuic {
    type Factory = Steered;
    const TRAITS: &'static Traits =
        &Traits { pacing: Pacing::ByRate, own: "s2n_quic::provider::congestion_controller::Cubic" };
}

/// The paths of one connection. [`Controllers`](crate::Controllers) makes one for each.
#[derive(Debug)]
pub struct Steered {
    paths: Paths,
}

impl Steered {
    /// A handle to all paths that the connection has or will have.
    pub fn handle(&self) -> Handle {
        self.paths.handle()
    }

    /// A path from now on, whose packets have at most this size.
    pub(crate) fn build(&self, now: Instant, mtu: u16) -> SharedPath {
        self.paths.build(now, mtu)
    }
}

impl From<Paths> for Steered {
    fn from(paths: Paths) -> Self {
        Self { paths }
    }
}

/// Of a connection that is made for this one alone.
pub(crate) type Owned = Arc<Steered>;

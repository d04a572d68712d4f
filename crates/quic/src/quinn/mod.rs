//! quinn's own congestion controllers under the checks of `trimtab conform`, in virtual time: one
//! connection of quinn over a link of the simulator.
//!
//! `trial.rs` has what happens when, `end.rs` an end of the connection, `watched.rs` what is seen of
//! the controller.

mod end;
mod trial;
mod watched;

use std::fmt;
use std::sync::Arc;

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{ClientConfig, ServerConfig, TransportConfig, VarInt};
use trimtab_lab::conform::{By, Family, Scene, Subject, Trial};
use trimtab_lab::run::datapath::RunError;
use trimtab_units::Bytes;

use self::trial::QuinnTrial;
use self::watched::{WatchedFactory, Watching};
use crate::error::QuicError;
use crate::identity;
use crate::side::PAYLOAD;

/// A terabyte: only the congestion window limits a sender.
const WINDOW: u64 = 1 << 40;

/// A congestion controller of quinn on quinn.
pub struct OnQuinn {
    name: String,
    family: Family,
    controllers: Arc<dyn ControllerFactory + Send + Sync>,
    server: Arc<QuicServerConfig>,
    client: Arc<QuicClientConfig>,
}

impl OnQuinn {
    /// What its name begins with.
    pub const PREFIX: &str = "quinn:";

    /// What follows `quinn:` in its name: `newreno`, `cubic` or `bbr`.
    ///
    /// # Errors
    /// There is no such controller.
    pub fn named(text: &str) -> Result<Self, RunError> {
        let controllers: Arc<dyn ControllerFactory + Send + Sync> = match text {
            "newreno" => Arc::new(NewRenoConfig::default()),
            "cubic" => Arc::new(CubicConfig::default()),
            "bbr" => Arc::new(BbrConfig::default()),
            _ => return Err("quinn has newreno, cubic and bbr of its own".into()),
        };
        let (server, client) = identity::configs()?;
        let fail = |e: &dyn fmt::Display| QuicError::Certificate(e.to_string());
        Ok(Self {
            name: format!("{}{text}", Self::PREFIX),
            family: Family::named(text),
            controllers,
            server: Arc::new(server.try_into().map_err(|e| fail(&e))?),
            client: Arc::new(client.try_into().map_err(|e| fail(&e))?),
        })
    }

    /// How the server speaks, with what is seen of its controller.
    fn server(&self) -> (ServerConfig, Watching) {
        let watching = Watching::default();
        let mut transport = transport();
        let factory = WatchedFactory::new(self.controllers.clone(), watching.clone());
        transport.congestion_controller_factory(Arc::new(factory));
        let mut server = ServerConfig::with_crypto(self.server.clone());
        server.transport_config(Arc::new(transport));
        (server, watching)
    }

    fn client(&self) -> ClientConfig {
        let mut client = ClientConfig::new(self.client.clone());
        client.transport_config(Arc::new(transport()));
        client
    }
}

impl fmt::Debug for OnQuinn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnQuinn").field(&self.name).finish()
    }
}

/// How both ends speak: as on noq.
fn transport() -> TransportConfig {
    let window = VarInt::from_u64(WINDOW).unwrap_or(VarInt::MAX);
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(PAYLOAD)
        .min_mtu(PAYLOAD)
        .mtu_discovery_config(None)
        .max_idle_timeout(None)
        .stream_receive_window(window)
        .receive_window(window)
        .send_window(WINDOW);
    transport
}

impl Subject for OnQuinn {
    fn name(&self) -> &str {
        &self.name
    }

    fn family(&self) -> Family {
        self.family
    }

    fn is_ours(&self, _: By) -> bool {
        false
    }

    /// quinn paces by the window.
    fn obeys_rate(&self) -> bool {
        false
    }

    fn packet(&self) -> Bytes {
        Bytes::new(PAYLOAD.into())
    }

    fn begin(&self, scene: &Scene) -> Result<Box<dyn Trial>, RunError> {
        let (server, watching) = self.server();
        Ok(Box::new(QuinnTrial::new(scene, server, self.client(), watching)))
    }
}

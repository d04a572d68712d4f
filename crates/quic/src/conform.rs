//! Congestion controllers on noq in virtual time, for `trimtab conform`: Trimtab's by the adapter,
//! noq's own, and any other that has noq's trait.

use std::fmt;
use std::sync::Arc;

use noq_proto::congestion::{Controller, ControllerFactory};
use trimtab_lab::conform::{By, Family, Look, Scene, Subject, Trial};
use trimtab_lab::run::datapath::RunError;
use trimtab_net::JitterConfig;
use trimtab_noq::Config;
use trimtab_steer::scheme::{Scheme, SchemeKind, StackCc};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::admission::{self, Governor};
use crate::clock::Clock;
use crate::error::QuicError;
use crate::flow::FlowConfig;
use crate::identity::Identity;
use crate::side::PAYLOAD;
use crate::virtual_world::{Propagation, VirtualWorld, lead};
use crate::world::World;

/// What the name of an algorithm of Trimtab begins with, after `noq:`.
const OURS: &str = "trimtab/";

/// Makes the controllers of a server.
type Controllers = Arc<dyn ControllerFactory + Send + Sync>;

/// A congestion controller on noq.
pub struct OnNoq {
    name: String,
    family: Family,
    kind: Kind,
    identity: Identity,
}

/// Whose controller it is.
enum Kind {
    /// An algorithm of Trimtab.
    Ours(Box<Config>),
    /// Another, noq's own for one.
    Other(Controllers),
}

impl OnNoq {
    /// What its name begins with.
    pub const PREFIX: &str = "noq:";

    /// What follows `noq:` in its name: `cubic`, `newreno` or `bbr3`, which are noq's own, or
    /// `trimtab/` and the text of an algorithm.
    ///
    /// # Errors
    /// There is no such algorithm.
    pub fn named(text: &str) -> Result<Self, RunError> {
        let name = format!("{}{text}", Self::PREFIX);
        if let Some(scheme) = text.strip_prefix(OURS) {
            let algorithm = scheme.split(':').next().unwrap_or(scheme);
            let family = Family::named(algorithm);
            return Ok(Self::new(name, family, Kind::Ours(Box::new(Config::new(scheme)?)))?);
        }
        let scheme: Scheme = name.parse()?;
        let SchemeKind::Stack(cc) = scheme.kind() else { unreachable!("the name says noq") };
        Ok(Self::new(name, family(*cc), Kind::Other(admission::own(*cc)))?)
    }

    /// A controller that nobody ships, such as one that a test has made wrong.
    ///
    /// # Errors
    /// The servers' certificate cannot be made.
    pub fn with(name: &str, family: Family, controllers: Controllers) -> Result<Self, QuicError> {
        Self::new(name.to_owned(), family, Kind::Other(controllers))
    }

    fn new(name: String, family: Family, kind: Kind) -> Result<Self, QuicError> {
        Ok(Self { name, family, kind, identity: Identity::new()? })
    }

    fn governor(&self, seed: u64, clock: Clock) -> Governor {
        let (controllers, handle) = match &self.kind {
            Kind::Other(controllers) => (controllers.clone(), None),
            Kind::Ours(config) => {
                let config =
                    Config::clone(config).with_seed(seed).with_clock(clock.instant(Time::ZERO));
                let (factory, handle) = config.connection();
                (factory as Controllers, Some(handle))
            }
        };
        Governor { controllers, handle, wants_factors: false }
    }
}

impl fmt::Debug for OnNoq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnNoq").field(&self.name).finish()
    }
}

fn family(cc: StackCc) -> Family {
    match cc {
        StackCc::NoqCubic => Family::Cubic,
        StackCc::NoqNewReno => Family::Reno,
        StackCc::NoqBbr3 => Family::Bbr3,
    }
}

impl Subject for OnNoq {
    fn name(&self) -> &str {
        &self.name
    }

    fn family(&self) -> Family {
        self.family
    }

    fn is_ours(&self, by: By) -> bool {
        by == By::Algorithm && matches!(self.kind, Kind::Ours(_))
    }

    fn packet(&self) -> Bytes {
        Bytes::new(PAYLOAD.into())
    }

    fn begin(&self, scene: &Scene) -> Result<Box<dyn Trial>, RunError> {
        let clock = Clock::new(lead(scene.rtt.longest()));
        let half = |delay: Duration| delay / 2;
        let halves = (scene.rtt.map(half), scene.rtt.map(half));
        let propagation = Propagation { halves, jitter: JitterConfig::None };
        let governor = self.governor(scene.seed, clock);
        let flows = vec![FlowConfig::alone(governor, scene.app.clone(), scene.seed)];
        let link = (&scene.link, scene.seed);
        Ok(Box::new(VirtualWorld::with(&self.identity, clock, link, &propagation, flows)))
    }
}

impl Trial for VirtualWorld {
    fn run_until(&mut self, until: Time) -> Result<(), RunError> {
        World::run_until(self, until).map_err(|e| match e {
            QuicError::Lost { after, reason, .. } => {
                let after = after.as_secs_f64();
                format!("noq ended the connection after {after:.2} s: {reason}").into()
            }
            other => other.into(),
        })
    }

    fn look(&mut self) -> Look {
        let at = self.now();
        let flow = self.first();
        let (seen, sent, goodput) = (flow.seen(), flow.sent(), flow.goodput());
        let rtt = flow.path().map_or(std::time::Duration::ZERO, |path| path.rtt);
        let metrics = flow.controller().map(Controller::metrics);
        Look {
            at,
            window: Bytes::new(metrics.as_ref().map_or(0, |metrics| metrics.congestion_window)),
            inflight: Bytes::new(seen.inflight),
            sent,
            lost: seen.lost,
            goodput,
            srtt: Duration::from_nanos(u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX)),
            pacing: metrics.and_then(|metrics| metrics.pacing_rate).map(Rate::from_bytes_per_sec),
        }
    }
}

//! s2n-quic in virtual time, with one connection: under the checks of `trimtab conform`, and as a
//! datapath of a comparison.
//!
//! s2n-quic is no sans-IO stack. It runs on an executor whose clock is virtual, and whose network is
//! ours (`network.rs`). It draws keys from the system, so two runs differ: the goodput of CUBIC by
//! less than a percent, that of Vivace by a tenth.
//!
//! `world.rs` has what happens when, `ends.rs` server and client, `watched.rs` what is seen of a
//! controller, `datapath.rs` a run of a comparison.

mod datapath;
mod ends;
mod network;
mod watched;
mod world;

use std::fmt;
use std::sync::Arc;

use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use trimtab_lab::conform::{By, Family, Look, Scene, Subject, Trial};
use trimtab_lab::run::datapath::RunError;
use trimtab_net::JitterConfig;
use trimtab_s2n_quic::Config;
use trimtab_units::{Bytes, Time};

pub use self::datapath::S2nVirtual;
use self::world::{ACK_DELAY, Governor, S2nWorld, lead};
use crate::clock::Clock;
use crate::side::PAYLOAD;
use crate::virtual_world::Propagation;

/// What the name of an algorithm of Trimtab begins with, after `s2n:`.
const OURS: &str = "trimtab/";

/// A congestion controller on s2n-quic.
pub struct OnS2n {
    name: String,
    family: Family,
    kind: Kind,
}

/// Whose controller it is.
enum Kind {
    Ours(Box<Config>),
    Cubic,
    Bbr,
}

impl OnS2n {
    /// What its name begins with.
    pub const PREFIX: &str = "s2n:";

    /// What follows `s2n:` in its name: `cubic` or `bbr`, which are s2n-quic's own, or `trimtab/`
    /// and the text of an algorithm.
    ///
    /// # Errors
    /// There is no such algorithm.
    pub fn named(text: &str) -> Result<Self, RunError> {
        let name = format!("{}{text}", Self::PREFIX);
        let (family, kind) = match (text.strip_prefix(OURS), text) {
            (Some(scheme), _) => {
                let algorithm = scheme.split(':').next().unwrap_or(scheme);
                (Family::named(algorithm), Kind::Ours(Box::new(Config::new(scheme)?)))
            }
            (None, "cubic") => (Family::Cubic, Kind::Cubic),
            // Version 2, of which no clause of the checks is: those for all senders apply.
            (None, "bbr") => (Family::Other, Kind::Bbr),
            _ => return Err("s2n-quic has cubic and bbr of its own".into()),
        };
        Ok(Self { name, family, kind })
    }

    fn governor(&self, seed: u64, clock: Clock) -> Governor {
        match &self.kind {
            Kind::Cubic => Governor::Cubic(Cubic::default()),
            Kind::Bbr => Governor::Bbr(Bbr::default()),
            Kind::Ours(config) => {
                let config = Config::clone(config).with_seed(seed);
                Governor::Ours(Arc::new(config.with_clock(clock.instant(Time::ZERO))))
            }
        }
    }
}

impl fmt::Debug for OnS2n {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnS2n").field(&self.name).finish()
    }
}

impl Subject for OnS2n {
    fn name(&self) -> &str {
        &self.name
    }

    fn family(&self) -> Family {
        self.family
    }

    /// What fails on s2n-quic may be for what it does not report, such as persistent congestion.
    fn is_ours(&self, _: By) -> bool {
        false
    }

    fn packet(&self) -> Bytes {
        Bytes::new(PAYLOAD.into())
    }

    fn begin(&self, scene: &Scene) -> Result<Box<dyn Trial>, RunError> {
        let clock = Clock::new(lead(scene.rtt.longest()));
        let half = || scene.rtt.map(|delay| delay / 2);
        let propagation = Propagation { halves: (half(), half()), jitter: JitterConfig::None };
        let governor = self.governor(scene.seed, clock);
        let link = (&scene.link, scene.seed);
        let client = (scene.app.clone(), ACK_DELAY);
        Ok(Box::new(S2nWorld::new(clock, link, &propagation, governor, client, false)?))
    }
}

impl Trial for S2nWorld {
    fn run_until(&mut self, until: Time) -> Result<(), RunError> {
        S2nWorld::run_until(self, until)
    }

    fn look(&mut self) -> Look {
        let seen = self.seen();
        Look {
            at: self.now(),
            window: Bytes::new(seen.window.into()),
            inflight: Bytes::new(seen.inflight.into()),
            sent: self.crossed().0,
            lost: seen.lost,
            goodput: self.goodput(),
            srtt: seen.srtt,
            pacing: self.pacing(),
        }
    }
}

#[cfg(test)]
mod tests;

//! Algorithms from outside of this crate: the seam for shared libraries, scripts and models.
//!
//! A [`Plugin`] is an algorithm behind a box that can be copied. [`Outside`] describes one and
//! builds its instances, one a connection. [`Spec::plugged`](crate::Spec::plugged) makes a spec of it,
//! and the spec runs wherever a built-in one does. The crate `trimtab-plugin` has the loaders.

use alloc::boxed::Box;
use core::fmt;

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::migrate::{HandOver, Migrate};
use crate::{
    Ack, Algorithm, Config, CongestionControl, Controller, Discarded, Feedback, Idle, Knob, Loss,
    LostPacket, Marked, Phase, Probe, Sent, Timeout,
};

/// An algorithm from outside. It has a window of its own in recovery, or the transport's, as
/// [`manages_recovery`](CongestionControl::manages_recovery) says.
pub trait Plugin: CongestionControl + fmt::Debug + Send + Sync {
    /// A copy that goes on as this one would: hosts fork their connections.
    fn duplicate(&self) -> Box<dyn Plugin>;
}

/// What builds an instance for a connection.
type Build = dyn Fn(&Config) -> Box<dyn Plugin> + Send + Sync;

/// An algorithm from outside: what it is, and what builds it.
pub struct Outside {
    algorithm: Algorithm,
    build: Box<Build>,
}

impl Outside {
    /// Describes one. Its name is what reports and records show.
    pub fn new(
        (name, about): (&'static str, &'static str),
        knobs: &'static [Knob],
        build: impl Fn(&Config) -> Box<dyn Plugin> + Send + Sync + 'static,
    ) -> Self {
        let algorithm =
            Algorithm { name, about, source: "a plug-in", knobs, presets: &[], build: by_its_spec };
        Self { algorithm, build: Box::new(build) }
    }

    /// Its description.
    pub fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// An instance with every knob at its default.
    pub(crate) fn build(&self, config: &Config) -> Plugged {
        Plugged { name: self.algorithm.name, plugin: (self.build)(config) }
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

/// A function has no room for what builds an instance; [`Spec::build`](crate::Spec::build) has.
fn by_its_spec(_: &Config) -> Controller {
    panic!("an algorithm from outside is built by its spec")
}

/// An instance of an algorithm from outside.
#[derive(Debug)]
pub struct Plugged {
    name: &'static str,
    plugin: Box<dyn Plugin>,
}

impl Plugged {
    /// Its name, as its description says.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl Clone for Plugged {
    fn clone(&self) -> Self {
        Self { name: self.name, plugin: self.plugin.duplicate() }
    }
}

/// Passes each call on.
macro_rules! pass_on {
    ($($method:ident(&mut self $(, $argument:ident: $Type:ty)*) $(-> $Answer:ty)?;)*) => {
        $(fn $method(&mut self $(, $argument: $Type)*) $(-> $Answer)? {
            self.plugin.$method($($argument),*)
        })*
    };
    ($($method:ident(&self $(, $argument:ident: $Type:ty)*) -> $Answer:ty;)*) => {
        $(fn $method(&self $(, $argument: $Type)*) -> $Answer {
            self.plugin.$method($($argument),*)
        })*
    };
}

impl CongestionControl for Plugged {
    pass_on! {
        on_established(&mut self, rtt: Duration);
        on_sent(&mut self, sent: &Sent);
        on_ack(&mut self, ack: &Ack);
        on_packet_lost(&mut self, lost: &LostPacket);
        on_loss(&mut self, loss: &Loss);
        on_marked(&mut self, marked: &Marked);
        on_timeout(&mut self, timeout: &Timeout);
        on_discarded(&mut self, discarded: &Discarded);
        on_mtu(&mut self, limits: &Config);
        on_spurious_loss(&mut self, now: Time);
        on_idle(&mut self, idle: &Idle);
        on_feedback(&mut self, feedback: &Feedback<'_>);
        on_timer(&mut self, now: Time);
        take_probe(&mut self, now: Time) -> Option<Probe>;
        apply_knob(&mut self, index: usize, value: f64);
    }

    pass_on! {
        next_timer(&self) -> Option<Time>;
        window(&self) -> Bytes;
        pacing_rate(&self) -> Option<Rate>;
        target(&self) -> Option<Rate>;
        ssthresh(&self) -> Option<Bytes>;
        phase(&self) -> Phase;
        manages_recovery(&self) -> bool;
        knobs(&self) -> &'static [Knob];
        knob(&self, index: usize) -> Option<f64>;
    }
}

/// No scheme has a plug-in take over: one that is asked goes on as a new connection does.
impl Migrate for Plugged {
    fn take_over(&mut self, _from: &HandOver) {}

    fn inherit(&mut self, _window: Bytes, _srtt: Duration) {}
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;

    use super::*;
    use crate::testing::{acked, lost};
    use crate::{NewReno, Spec, get_knob, set_knob};

    /// NewReno, from outside.
    #[derive(Clone, Debug)]
    struct Mine(NewReno);

    impl CongestionControl for Mine {
        fn on_ack(&mut self, ack: &Ack) {
            self.0.on_ack(ack);
        }
        fn on_loss(&mut self, loss: &Loss) {
            self.0.on_loss(loss);
        }
        fn on_timeout(&mut self, timeout: &Timeout) {
            self.0.on_timeout(timeout);
        }
        fn on_mtu(&mut self, limits: &Config) {
            self.0.on_mtu(limits);
        }
        fn window(&self) -> Bytes {
            self.0.window()
        }
        fn phase(&self) -> Phase {
            self.0.phase()
        }
        fn knobs(&self) -> &'static [Knob] {
            self.0.knobs()
        }
        fn knob(&self, index: usize) -> Option<f64> {
            self.0.knob(index)
        }
        fn apply_knob(&mut self, index: usize, value: f64) {
            self.0.apply_knob(index, value);
        }
    }

    impl Plugin for Mine {
        fn duplicate(&self) -> Box<dyn Plugin> {
            Box::new(self.clone())
        }
    }

    fn outside() -> &'static Outside {
        let build = |config: &Config| -> Box<dyn Plugin> { Box::new(Mine(NewReno::new(config))) };
        Box::leak(Box::new(Outside::new(("mine", "NewReno"), NewReno::KNOBS, build)))
    }

    #[test]
    fn a_spec_of_an_algorithm_from_outside_builds_it_with_its_knobs() {
        let mut spec = Spec::plugged(outside());
        spec.set("linux", 1.0).unwrap();
        let mut cca = spec.build(&Config::default());
        assert_eq!((cca.name(), get_knob(&cca, "linux")), ("mine", Some(1.0)));
        set_knob(&mut cca, "linux", 0.0).unwrap();
        assert_eq!(get_knob(&cca, "linux"), Some(0.0));
        assert!(spec.set("delta", 1.0).is_err());
    }

    #[test]
    fn a_copy_goes_on_by_itself() {
        let (mss, rtt) = (Bytes::new(1500), Duration::from_millis(50));
        let mut cca = Spec::plugged(outside()).build(&Config::default());
        cca.on_ack(&acked(Time::from_millis(50), Time::ZERO, mss, rtt));
        let mut copy = cca.clone();
        copy.on_loss(&lost(Time::from_millis(60), Time::from_millis(10)));
        assert_eq!((cca.window(), copy.window()), (mss * 11, mss * 11 / 2));
        assert_eq!((cca.phase(), copy.phase()), (Phase::SlowStart, Phase::Recovery));
    }
}

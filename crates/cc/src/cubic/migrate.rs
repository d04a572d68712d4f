//! CUBIC takes over: the window that it is handed is the plateau of its curve.

use trimtab_units::{Bytes, Duration};

use super::{Cubic, Growth, SlowStart};
use crate::episode::Episode;
use crate::migrate::{HandOver, Migrate};

impl Migrate for Cubic {
    fn take_over(&mut self, from: &HandOver) {
        self.episode = Episode::default();
        self.before = None;
        self.window.take_over(from.window);
        match &mut self.growth {
            // As after a slow start that ended without loss (RFC 9438 §4.10): K = 0, growth convex.
            Growth::Rfc(curve) => curve.on_slow_start_exit(self.window.packets()),
            Growth::Linux(curve) => {
                self.window.align();
                self.window.ssthresh = self.window.size;
                curve.take_over(self.window.packets() as u64, from.min_rtt);
            }
        }
        if let SlowStart::Linux(hystart) = &mut self.slow_start {
            hystart.disarm();
        }
    }

    fn inherit(&mut self, window: Bytes, _srtt: Duration) {
        self.window.set(window);
        if matches!(self.growth, Growth::Linux(_)) {
            self.window.align();
        }
    }

    /// The losses of the jump stay those of one episode. The plateau is the threshold: what the
    /// window was in the jump is no window that the path carried.
    fn retreat(&mut self, from: &HandOver, ssthresh: Bytes) {
        self.before = None;
        self.window.retreat(from.window, ssthresh);
        match &mut self.growth {
            Growth::Rfc(curve) => {
                curve.on_slow_start_exit(self.window.ssthresh.ratio(self.window.mss));
            }
            Growth::Linux(curve) => {
                self.window.align();
                let plateau = self.window.ssthresh.get() / self.window.mss.get();
                curve.take_over(plateau, from.min_rtt);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CongestionControl;
    use crate::testing::link::MSS;
    use crate::testing::{acked, hand_over};
    use crate::{Config, Spec};
    use trimtab_units::Time;

    /// migration.md E-4, E-9: the window is the plateau, and growth is Reno's from there.
    #[test]
    fn the_window_is_the_plateau() {
        let rtt = Duration::from_millis(21);
        let mut cubic = Cubic::new(&Config::with_mss(MSS, 0));
        cubic.take_over(&hand_over(MSS * 84, rtt));
        assert_eq!((cubic.window(), cubic.ssthresh()), (MSS * 84, Some(MSS * 84)));
        assert!(cubic.is_converged());
        let Growth::Rfc(curve) = &cubic.growth else { panic!("the RFC's") };
        assert_eq!(curve.plateau(), (84.0, None), "W_max; the epoch starts with the next ACK");
        // One second: as many round trips, a packet for each (α = 1), and never less.
        let mut now = Time::from_secs(30);
        let rounds = 48;
        for _ in 0..rounds {
            now += rtt;
            for _ in 0..cubic.window().get() / MSS.get() {
                cubic.on_ack(&acked(now, now - rtt, MSS, rtt));
            }
        }
        let Growth::Rfc(curve) = &cubic.growth else { panic!("the RFC's") };
        assert_eq!(curve.plateau(), (84.0, Some(0.0)), "K = 0");
        let grown = cubic.window().ratio(MSS) - 84.0;
        assert!((grown - f64::from(rounds)).abs() < 1.0, "{grown} packets in {rounds} rounds");
    }

    #[test]
    fn as_in_linux_the_window_is_whole_packets_and_hystart_rests() {
        let spec: Spec = "cubic:linux".parse().unwrap();
        let mut cca = spec.build(&Config::with_mss(MSS, 0));
        cca.take_over(&hand_over(MSS * 84 + Bytes::new(700), Duration::from_millis(21)));
        assert_eq!((cca.window(), cca.ssthresh()), (MSS * 84, Some(MSS * 84)));
        let crate::Controller::Cubic(cubic) = cca else { panic!("it is CUBIC") };
        let Growth::Linux(curve) = &cubic.growth else { panic!("Linux's") };
        assert_eq!(curve.plateau(), (84, 0));
    }
}

//! The times of a call that went worst for its viewer.

use trimtab_units::{Duration, Time};

use super::record::{CallRecord, FrameRecord};

/// Moments of each kind that are picked.
const EACH: usize = 3;
/// Picked moments are so far apart, or this share of the call if that is longer: one bad second is
/// one moment, and their numbers in a picture do not cover each other.
const APART: Duration = Duration::from_secs(2);
const APART_SHARE: u64 = 60;

/// A time that went badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When it began.
    pub from: Time,
    /// When it ended: just before, the picture on the screen was oldest.
    pub until: Time,
    /// What went badly.
    pub kind: MomentKind,
}

/// What went badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MomentKind {
    /// The picture stood still.
    Frozen,
    /// A frame came late: the moment is from its capture to the screen.
    Late,
}

/// The pictures of a moment, as JPEG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Still {
    /// The end of the moment ([`Moment::until`]).
    pub at: Time,
    /// What was on the screen just before it.
    pub seen: Vec<u8>,
    /// What had been captured by then.
    pub captured: Vec<u8>,
}

impl Moment {
    /// How long it lasted.
    pub fn length(&self) -> Duration {
        self.until.since(self.from)
    }
}

impl CallRecord {
    /// The worst moments, by time: the longest freezes, and away from them the frames that came
    /// latest. At most three of each.
    pub fn worst_moments(&self) -> Vec<Moment> {
        let late = |frame: &FrameRecord| {
            let (from, until) = (frame.captured_at, frame.presented_at?);
            Some(Moment { from, until, kind: MomentKind::Late })
        };
        let mut picked: Vec<Moment> = Vec::new();
        for mut moments in [self.frozen(), self.frames.iter().filter_map(late).collect()] {
            // The earlier of equals.
            moments.sort_by_key(|moment| (std::cmp::Reverse(moment.length()), moment.until));
            let mut count = 0;
            for moment in moments {
                if count == EACH {
                    break;
                }
                if picked.iter().all(|other| self.are_apart(other, &moment)) {
                    picked.push(moment);
                    count += 1;
                }
            }
        }
        picked.sort_by_key(|moment| moment.until);
        picked
    }

    fn are_apart(&self, a: &Moment, b: &Moment) -> bool {
        let distance = a.until.max(b.until).since(a.until.min(b.until));
        distance >= APART.max(self.length() / APART_SHARE)
    }
}

#[cfg(test)]
mod tests {
    use trimtab_units::{Bytes, Rate};

    use super::*;
    use crate::Picture;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// A minute of frames every 40 ms of which frame `i` is presented `delay(i)` after its capture.
    fn call(delay: impl Fn(u64) -> Option<u64>) -> CallRecord {
        let frame = |i: u64| FrameRecord {
            captured_at: ms(40 * i),
            bytes: Bytes::new(5000),
            asked: Rate::from_mbps(1.0),
            height: 360,
            key: i == 0,
            presented_at: delay(i).map(|delay| ms(40 * i + delay)),
        };
        CallRecord {
            start: Time::ZERO,
            end: ms(60_000),
            interval: Duration::from_millis(40),
            frames: (0..1500).map(frame).collect(),
            audio: Vec::new(),
            pause: None,
            picture: Picture::default(),
            measured_vmaf: None,
            stills: Vec::new(),
        }
    }

    #[test]
    fn the_worst_of_each_kind_are_picked_and_stand_by_time() {
        // Frozen at 10 s for 1.04 s and at 40 s for 0.44 s; frame 500, of 20 s, is 150 ms late, and
        // the one after it nearly as much.
        let call = call(|i| match i {
            250..275 | 1000..1010 => None,
            500 => Some(150),
            501 => Some(120),
            _ => Some(60),
        });
        let all = call.worst_moments();
        let of = |kind| all.iter().filter(move |moment| moment.kind == kind);
        let frozen: Vec<_> = of(MomentKind::Frozen).map(|m| (m.from, m.until)).collect();
        assert_eq!(frozen, [(ms(10_020), ms(11_060)), (ms(40_020), ms(40_460))]);
        assert_eq!(call.frozen().len() as u32, call.freezes().count);
        let late: Vec<_> = of(MomentKind::Late).map(|m| (m.from, m.until)).collect();
        assert_eq!(late[2], (ms(20_000), ms(20_150)), "{late:?}");
        assert_eq!(late.len(), 3, "the others are as late as any, and away from it");
        assert!(late.iter().all(|(_, until)| *until != ms(20_160)), "one bad second is one moment");
        assert!(all.windows(2).all(|pair| pair[0].until + APART <= pair[1].until));
    }

    #[test]
    fn a_call_without_a_picture_has_no_moment() {
        assert_eq!(call(|_| None).worst_moments(), []);
    }
}

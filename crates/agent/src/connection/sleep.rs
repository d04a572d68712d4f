//! An idle connection: nobody looks at it until the datapath tells that something happens on it, and
//! after a while it gives back the memory that it can do without.

use std::collections::VecDeque;
use std::sync::Arc;

use trimtab_datapath::IDLE_MAX;
use trimtab_steer::{Mortise, Steerer};
use trimtab_units::Duration;

use super::{Connection, Looked, Setting, Turned};
use crate::config::Steering;
use crate::datapath::Link;

/// Of what was silent for so long in a row, only what it needs to go on is kept. Longer than a video
/// player pauses between two chunks, whose connection goes on with all that its steering has learnt.
const COMPACT_AFTER: Duration = Duration::from_secs(10);

/// What is remembered of what connections were told, to be shared.
const TOLD_MAX: usize = 16;

/// What connections were told that fell asleep of late.
#[derive(Debug, Default)]
pub(crate) struct Told(VecDeque<Arc<Vec<Turned>>>);

/// How deep it sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Sleep {
    /// It is looked at in time.
    #[default]
    Awake,
    /// The datapath tells when something happens.
    Watched,
    /// The same, and its memory was given back; Mortise had this δ, in 1/packets.
    Compact(Option<f64>),
}

impl<L: Link> Connection<L> {
    /// Whether nobody looks at it until the datapath tells of it.
    pub(crate) fn is_asleep(&self) -> bool {
        self.sleep != Sleep::Awake
    }

    /// Nothing has happened for long, and the look that found so saw that many acknowledgements;
    /// `None` where it has to be looked at all the same.
    pub(super) fn fall_asleep(&mut self, acks: u64, setting: &Setting<'_>) -> Option<Looked> {
        // Whose knobs an engine chooses follows it while it is idle, too.
        if self.customizing.is_some() {
            return None;
        }
        // It tells once; and what happened just before it was asked is not told.
        if !self.link.watch() || self.link.acks() != Some(acks) {
            return None;
        }
        if self.sleep == Sleep::Awake {
            self.sleep = Sleep::Watched;
            return Some(Looked::again(setting.now + COMPACT_AFTER - IDLE_MAX));
        }
        self.compact();
        Some(Looked { sleeps: true, ..Looked::default() })
    }

    /// This side has closed it: nothing of it will be steered any more.
    pub(super) fn rest(&mut self, setting: &Setting<'_>) -> Looked {
        self.attention.rest();
        // The sums of an aggregate's connection are read at its end.
        if self.customizing.is_some() || !self.link.watch() {
            return Looked::again(setting.now + IDLE_MAX);
        }
        self.compact();
        Looked { sleeps: true, ..Looked::default() }
    }

    fn compact(&mut self) {
        if matches!(self.sleep, Sleep::Compact(_)) {
            return;
        }
        // Mortise goes on from its δ alone, as after a restart of the agent. What others have learnt is more.
        let mortise = self.steering.take_if(|steering| matches!(**steering, Steerer::Mortise(_)));
        let delta = mortise.as_deref().and_then(|steering| match steering {
            Steerer::Mortise(mortise) => Some(mortise.applied_delta()),
            _ => None,
        });
        self.window.clear();
        self.responses.clear();
        self.guard.shrink();
        self.last = None;
        self.sleep = Sleep::Compact(delta);
    }

    /// Whether nothing is lost of it when the agent forgets it until it is active again.
    pub(crate) fn can_leave(&self) -> bool {
        let is_plain = self.guard.get().is_none() && self.hint.get().is_none() && !self.yielded;
        is_plain && matches!(self.sleep, Sleep::Compact(_)) && self.steering.is_none()
    }

    /// Most connections of a rule were told the same: those that sleep keep it once.
    pub(crate) fn share(&mut self, told: &mut Told) {
        match told.0.iter().find(|known| **known == self.applied) {
            Some(known) => self.applied = Arc::clone(known),
            None => {
                told.0.push_back(Arc::clone(&self.applied));
                if told.0.len() > TOLD_MAX {
                    told.0.pop_front();
                }
            }
        }
    }

    /// Something happens on it again.
    pub(super) fn wake(&mut self, setting: &Setting<'_>) {
        let Sleep::Compact(Some(delta)) = std::mem::take(&mut self.sleep) else { return };
        let steering = setting.rule.and_then(|rule| rule.steering.as_ref());
        let Some(Steering::Mortise(settings)) = steering else { return };
        let Some(model) = self.model(setting.rule) else { return };
        self.steer_by(Box::new(Mortise::resume(settings.config(model.clone()), delta)));
    }
}

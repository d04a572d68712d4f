//! A connection whose knobs the engine of a fleet chooses.

use trimtab_cc::Knob;
use trimtab_datapath::{Responses, Totals};
use trimtab_fleet_client::edge::Edge;

use super::{Connection, NEW_WITHIN, Setting};
use crate::config::{Customized, Mode};
use crate::connection::customize::Customizing;
use crate::connection::decision::Cause;
use crate::connection::rare::Rare;
use crate::datapath::Link;

impl<L: Link> Connection<L> {
    pub(super) fn start_customized(&mut self, customized: &Customized, setting: &Setting<'_>) {
        let identity = *self.link.identity();
        let key = customized.key(identity.remote.ip());
        // From its first byte on, where it is new; what it ran before the agent or its rule came
        // was another configuration.
        let is_new = !identity.adopted && setting.now.since(identity.opened) <= NEW_WITHIN;
        let before = if is_new { None } else { self.link.totals() };
        self.customizing = Some(Box::new(Customizing::new(key, before.unwrap_or_default())));
        self.responses = if is_new {
            Responses::from_the_beginning(identity.opened).into()
        } else {
            Rare::default()
        };
        self.customize(setting);
    }

    /// Takes over what the engine of the fleet has changed; the algorithm heeds its knobs when its
    /// next monitor interval begins.
    pub(super) fn customize(&mut self, setting: &Setting<'_>) -> Option<String> {
        let (Some(mut customizing), Some(edge)) = (self.customizing.take(), setting.edge) else {
            return None;
        };
        self.notice_others();
        if let Some(totals) = self.link.totals() {
            // What ran something else than the engine chose says nothing of what it chose.
            if setting.mode == Mode::Apply && !self.yielded && !self.is_resting() {
                customizing.on_totals(totals);
            } else {
                customizing.leave_out(totals);
            }
        }
        if self.is_resting() {
            self.customizing = Some(customizing);
            return None;
        }
        let is_first = !customizing.part.has_followed() && self.link.identity().towards;
        let note = customizing.part.follow(edge).and_then(|to| {
            let (running, aggregate) = (self.link.algorithm(), customizing.part.key().to_string());
            if to.algorithm != running.name() {
                return Some(format!(
                    "{aggregate}: the engine configures {}, and the rule is about {}: name that \
                     algorithm in one of both",
                    to.algorithm,
                    running.name()
                ));
            }
            let cause = Cause::Fleet { aggregate, version: to.version };
            let given = |name: &str| to.knobs.iter().find(|(knob, _)| knob == name);
            for knob in running.knobs() {
                // What it no longer says is as the algorithm has it, also where it began with something else (`ahead`).
                let was = self.applied.iter().any(|turned| turned.knob == knob.name)
                    || (is_first && self.has_another(knob));
                if let Some(value) =
                    given(knob.name).map(|(_, value)| *value).or(was.then_some(knob.default))
                {
                    self.turn(knob.name, value, cause.clone(), setting);
                }
            }
            None
        });
        self.customizing = Some(customizing);
        note
    }

    /// Whether a knob is not the algorithm's default, which the kernel's integers may miss by a little.
    fn has_another(&self, knob: &Knob) -> bool {
        let off = |now: f64| (now - knob.default).abs() > 1e-3 * knob.default.abs().max(1e-3);
        self.link.knob(knob.name).is_ok_and(off)
    }

    /// It ends with these sums, or its rule does: hands in what it saw for its aggregate.
    pub(crate) fn end(&mut self, mode: Mode, edge: Option<&Edge>, last: Option<&Totals>) {
        let (Some(mut customizing), Some(edge)) = (self.customizing.take(), edge) else { return };
        let is_steered = mode == Mode::Apply && !self.yielded && !self.is_resting();
        if let Some(last) = last.filter(|_| is_steered) {
            customizing.on_totals(*last);
            customizing.part.on_responses(self.responses.make().at_the_end(last.last));
        }
        customizing.part.hand_in(edge);
    }

    /// Whether to wait for the kernel's close event, which has the last sums; only once.
    pub(crate) fn awaits_end(&mut self) -> bool {
        self.customizing.is_some() && !std::mem::replace(&mut self.has_ended, true)
    }
}

//! A connection whose algorithm and knobs the engine of a fleet chooses.

use std::sync::Arc;

use trimtab_cc::Knob;
use trimtab_cc::migrate::Switch;
use trimtab_datapath::{Responses, Totals, can_run};
use trimtab_fleet_client::edge::{Configuration, Edge};

use super::{Connection, NEW_WITHIN, Setting};
use crate::config::{Customized, Mode};
use crate::connection::customize::Customizing;
use crate::connection::decision::Cause;
use crate::connection::rare::Rare;
use crate::datapath::{ALGORITHMS, Link, algorithm};

impl<L: Link> Connection<L> {
    pub(super) fn start_customized(&mut self, customized: &Customized, setting: &Setting<'_>) {
        let identity = *self.link.identity();
        let client = identity.remote.ip();
        let key = customized.key(client);
        // From its first byte on, where it is new; what it ran before the agent or its rule came
        // was another configuration.
        let is_new = !identity.adopted && setting.now.since(identity.opened) <= NEW_WITHIN;
        let before = if is_new { None } else { self.link.totals() };
        let customizing = Customizing::new(key, client, before.unwrap_or_default());
        self.customizing = Some(Box::new(customizing));
        self.responses = if is_new {
            Responses::from_the_beginning(identity.opened).into()
        } else {
            Rare::default()
        };
        self.customize(setting);
    }

    /// Takes over what the engine of the fleet has changed: another algorithm with the next
    /// acknowledgement, knobs when the algorithm's next monitor interval begins.
    pub(super) fn customize(&mut self, setting: &Setting<'_>) -> Option<String> {
        let (Some(mut customizing), Some(edge)) = (self.customizing.take(), setting.edge) else {
            return None;
        };
        self.notice_others();
        let is_steered = setting.mode == Mode::Apply && !self.yielded && !self.is_resting();
        if let Some(totals) = self.link.totals() {
            // What ran something else than the engine chose says nothing of what it chose.
            if is_steered && customizing.algorithm == Some(self.link.algorithm()) {
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
        let to = customizing.part.follow(edge);
        let note = to.and_then(|to| self.run_chosen(&to, &mut customizing, is_first, setting));
        self.customizing = Some(customizing);
        note
    }

    /// Has the connection run what the engine chose; why it cannot, where that is so.
    fn run_chosen(
        &mut self,
        to: &Configuration,
        customizing: &mut Customizing,
        is_first: bool,
        setting: &Setting<'_>,
    ) -> Option<String> {
        let aggregate = customizing.part.key().to_string();
        let spec = to.spec().ok().filter(|spec| can_run(spec, ALGORITHMS));
        customizing.algorithm = algorithm(&to.algorithm).filter(|_| spec.is_some());
        let (Some(spec), Some(wanted)) = (spec, customizing.algorithm) else {
            return Some(format!(
                "{aggregate}: the engine chose {to}, which connections cannot run here: leave it \
                 out of the service, or let an agent that has it serve these destinations"
            ));
        };
        let cause = Cause::Fleet { aggregate, version: to.version };
        let running = self.link.algorithm();
        let pending = self.link.switching().and_then(|switching| switching.pending);
        if wanted != running || pending.is_some_and(|pending| pending != running) {
            if !self.yielded {
                // With its knobs as the engine has them, and not as they were left.
                self.asked.clear();
                self.switch(&spec, Switch::Full, cause, setting);
                if setting.mode == Mode::Apply {
                    // What was turned are knobs of the algorithm before.
                    self.applied = Arc::default();
                }
            }
            return None;
        }
        let given = |name: &str| to.knobs.iter().find(|(knob, _)| knob == name);
        let has_begun_so =
            is_first || self.asked.get().is_some_and(|asked| asked.with_knobs(running));
        for knob in running.knobs() {
            // What it no longer says is as the algorithm has it, also where it began with something
            // else (`ahead`) or took over with it.
            let was = self.applied.iter().any(|turned| turned.knob == knob.name)
                || (has_begun_so && self.has_another(knob));
            if let Some(value) =
                given(knob.name).map(|(_, value)| *value).or(was.then_some(knob.default))
            {
                self.turn(knob.name, value, cause.clone(), setting);
            }
        }
        None
    }

    /// Whether it runs what the engine chose, and nobody else's choice.
    pub(super) fn is_as_chosen(&self, mode: Mode) -> bool {
        let chosen = self.customizing.as_deref().and_then(|customizing| customizing.algorithm);
        let is_steered = mode == Mode::Apply && !self.yielded && !self.is_resting();
        is_steered && chosen == Some(self.link.algorithm())
    }

    /// Whether a knob is not the algorithm's default, which the kernel's integers may miss by a little.
    fn has_another(&self, knob: &Knob) -> bool {
        let off = |now: f64| (now - knob.default).abs() > 1e-3 * knob.default.abs().max(1e-3);
        self.link.knob(knob.name).is_ok_and(off)
    }

    /// It ends with these sums, or its rule does: hands in what it saw for its aggregate.
    pub(crate) fn end(&mut self, mode: Mode, edge: Option<&Edge>, last: Option<&Totals>) {
        let is_as_chosen = self.is_as_chosen(mode);
        let (Some(mut customizing), Some(edge)) = (self.customizing.take(), edge) else { return };
        if let Some(last) = last.filter(|_| is_as_chosen) {
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

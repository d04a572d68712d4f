//! A connection that a library governs.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use trimtab_cc::{Ack, Config, CongestionControl, Idle, Knob, Loss, Phase, Plugin, Sent, Timeout};
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::{Functions, NEVER, RawAck, RawConfig, RawIdle, RawLoss, RawSent, RawTimeout};
use crate::answer;

/// What `create` or `clone` gave; NULL where it gave nothing, or is not to be asked any more.
#[derive(Debug)]
struct Handle(*mut c_void);

// SAFETY: the header lets any thread call the functions of a connection, one at a time.
unsafe impl Send for Handle {}

/// A connection that a library governs.
#[derive(Debug)]
pub(super) struct Instance {
    functions: &'static Functions,
    /// Locked for copies alone: all that changes it has it for itself.
    handle: Mutex<Handle>,
    min_window: Bytes,
    window: Bytes,
    rate: Option<Rate>,
    timer: Option<Time>,
    knobs: Vec<f64>,
}

impl Instance {
    pub(super) fn create(functions: &'static Functions, config: &Config) -> Self {
        let raw = RawConfig {
            mss_bytes: config.mss.get(),
            initial_window_bytes: config.initial_window.get(),
            min_window_bytes: config.min_window.get(),
            seed: config.seed,
        };
        // SAFETY: the library's function, with what the header says.
        let handle = unsafe { (functions.create)(&raw) };
        if handle.is_null() {
            functions.fault.note(
                "create() returned NULL: return a pointer to the state of a new connection"
                    .to_owned(),
            );
        }
        let mut instance = Self {
            functions,
            handle: Mutex::new(Handle(handle)),
            min_window: config.min_window,
            window: config.initial_window,
            rate: None,
            timer: None,
            knobs: functions.knobs.iter().map(|knob| knob.default).collect(),
        };
        instance.after("create", |_| {});
        instance
    }

    /// Tells the library what happened, and asks what it wants now. One that failed is left alone,
    /// and its window stays.
    fn after(&mut self, event: &str, tell: impl FnOnce(*mut c_void)) {
        let handle = self.handle.get_mut().unwrap_or_else(PoisonError::into_inner).0;
        if handle.is_null() {
            return;
        }
        tell(handle);
        if let Err(what) = self.ask(event, handle) {
            self.functions.fault.note(what);
            self.give_up();
        }
    }

    fn ask(&mut self, event: &str, handle: *mut c_void) -> Result<(), String> {
        let Functions { window, raw, .. } = *self.functions;
        // SAFETY: the library's function, with what it gave for this connection.
        let bytes = unsafe { window(handle) };
        self.window =
            answer::window(format_args!("window(), after {event},"), bytes, self.min_window)?;
        if let Some(pacing_rate) = raw.pacing_rate {
            // SAFETY: as above.
            let bps = unsafe { pacing_rate(handle) };
            let what = format_args!("pacing_rate(), after {event},");
            self.rate = (bps != 0.0).then(|| answer::rate(what, bps * 1e-6)).transpose()?;
        }
        if let Some(next_timer) = raw.next_timer {
            // SAFETY: as above.
            let at = unsafe { next_timer(handle) };
            self.timer = (at != NEVER).then(|| Time::from_nanos(at));
        }
        Ok(())
    }

    /// Leaves the library alone from now on. There is no timer then.
    fn give_up(&mut self) {
        let handle = self.handle.get_mut().unwrap_or_else(PoisonError::into_inner);
        let handle = std::mem::replace(&mut handle.0, std::ptr::null_mut());
        if !handle.is_null() {
            // SAFETY: this is the last use of what the library gave.
            unsafe { (self.functions.destroy)(handle) };
        }
        self.timer = None;
    }

    /// A copy of the library's state; NULL where there is none.
    fn copy(&self) -> *mut c_void {
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(clone) = self.functions.raw.clone.filter(|_| !handle.0.is_null()) else {
            return std::ptr::null_mut();
        };
        // SAFETY: the library's function, with what it gave for this connection.
        unsafe { clone(handle.0) }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl CongestionControl for Instance {
    fn on_sent(&mut self, sent: &Sent) {
        let Some(on_sent) = self.functions.raw.on_sent else { return };
        let raw = RawSent {
            now_ns: sent.now.as_nanos(),
            bytes: sent.bytes.get(),
            inflight_bytes: sent.inflight.get(),
            app_limited: sent.app_limited.into(),
            reserved: [0; 7],
        };
        // SAFETY: the library's function, with what it gave for this connection.
        self.after("on_sent", |handle| unsafe { on_sent(handle, &raw) });
    }

    fn on_ack(&mut self, ack: &Ack) {
        let on_ack = self.functions.on_ack;
        let raw = RawAck {
            now_ns: ack.now.as_nanos(),
            acked_bytes: ack.acked.get(),
            rtt_ns: ack.rtt.map_or(0, Duration::as_nanos),
            srtt_ns: ack.srtt.as_nanos(),
            min_rtt_ns: ack.min_rtt.as_nanos(),
            inflight_bytes: ack.inflight.get(),
            prior_inflight_bytes: ack.prior_inflight.get(),
            delivered_bytes: ack.delivered.get(),
            newest_sent_ns: ack.newest_sent_at.as_nanos(),
            delivery_rate_bps: ack.rate.map_or(0.0, |sample| sample.rate().bits_per_sec()),
            rate_app_limited: ack.rate.is_some_and(|sample| sample.app_limited).into(),
            cwnd_limited: ack.cwnd_limited.into(),
            in_recovery: ack.in_recovery.into(),
            reserved: [0; 5],
        };
        // SAFETY: as in `on_sent`.
        self.after("on_ack", |handle| unsafe { on_ack(handle, &raw) });
    }

    fn on_loss(&mut self, loss: &Loss) {
        let on_loss = self.functions.on_loss;
        let raw = RawLoss {
            now_ns: loss.now.as_nanos(),
            lost_bytes: loss.lost.get(),
            newest_sent_ns: loss.newest_sent_at.as_nanos(),
            inflight_bytes: loss.inflight.get(),
            prior_inflight_bytes: loss.prior_inflight.get(),
        };
        // SAFETY: as in `on_sent`.
        self.after("on_loss", |handle| unsafe { on_loss(handle, &raw) });
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        let on_timeout = self.functions.on_timeout;
        let raw = RawTimeout {
            now_ns: timeout.now.as_nanos(),
            prior_inflight_bytes: timeout.prior_inflight.get(),
            inflight_bytes: timeout.inflight.get(),
        };
        // SAFETY: as in `on_sent`.
        self.after("on_timeout", |handle| unsafe { on_timeout(handle, &raw) });
    }

    /// The library is not told: what it counts in packets is in those of the connection's start.
    fn on_mtu(&mut self, limits: &Config) {
        self.min_window = limits.min_window;
        self.window = self.window.max(self.min_window);
    }

    fn on_idle(&mut self, idle: &Idle) {
        let Some(on_idle) = self.functions.raw.on_idle else { return };
        let raw = RawIdle {
            now_ns: idle.now.as_nanos(),
            idle_ns: idle.idle.as_nanos(),
            rto_ns: idle.rto.as_nanos(),
        };
        // SAFETY: as in `on_sent`.
        self.after("on_idle", |handle| unsafe { on_idle(handle, &raw) });
    }

    fn on_timer(&mut self, now: Time) {
        let Some(on_timer) = self.functions.raw.on_timer else { return };
        // SAFETY: as in `on_sent`.
        self.after("on_timer", |handle| unsafe { on_timer(handle, now.as_nanos()) });
        if self.timer.is_some_and(|next| next <= now) {
            self.functions.fault.note(format!(
                "next_timer(), after on_timer({now} ns), gave a time that is not later: give a \
                 later one, or TRIMTAB_NEVER",
                now = now.as_nanos()
            ));
            self.give_up();
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.timer
    }

    fn window(&self) -> Bytes {
        self.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn phase(&self) -> Phase {
        Phase::Steady
    }

    fn manages_recovery(&self) -> bool {
        self.functions.manages_recovery()
    }

    fn knobs(&self) -> &'static [Knob] {
        self.functions.knobs
    }

    fn knob(&self, index: usize) -> Option<f64> {
        self.knobs.get(index).copied()
    }

    fn apply_knob(&mut self, index: usize, value: f64) {
        let (Some(knob), Some(set_knob)) = (self.knobs.get_mut(index), self.functions.raw.set_knob)
        else {
            return;
        };
        *knob = value;
        // SAFETY: as in `on_sent`; the value is in the knob's range.
        self.after("set_knob", |handle| unsafe { set_knob(handle, index as u32, value) });
    }
}

impl Plugin for Instance {
    fn duplicate(&self) -> Box<dyn Plugin> {
        let handle = self.copy();
        if handle.is_null() {
            self.functions.fault.note(
                "clone() returned NULL, or there is none: return a copy of the state, for bounds"
                    .to_owned(),
            );
        }
        Box::new(Self {
            functions: self.functions,
            handle: Mutex::new(Handle(handle)),
            min_window: self.min_window,
            window: self.window,
            rate: self.rate,
            timer: self.timer.filter(|_| !handle.is_null()),
            knobs: self.knobs.clone(),
        })
    }
}

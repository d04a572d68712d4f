//! Congestion controls of the kernel's TCP in real time, for `trimtab conform`: the kernel's own, and
//! Trimtab's in eBPF. What can be seen of them is what `TCP_INFO` has.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use trimtab_cc::Spec;
use trimtab_emu::{Config, Topology};
use trimtab_lab::conform::{By, Check, Family, Look, Scene, Subject, Trial};
use trimtab_lab::run::datapath::{Datapath as _, RunError};
use trimtab_lab::run::emulated;
use trimtab_lab::run::pool::INTERRUPTED;
use trimtab_units::{Bytes, Duration, Time};

use crate::admission::{self, Governor};
use crate::clock::{Clock, hurry};
use crate::course::{self, Crew, Flow, Member};
use crate::error::RealError;
use crate::rig::Rig;
use crate::sys::{self, TcpInfo};

/// What the name of an algorithm of Trimtab begins with, after `kernel:`.
const OURS: &str = "trimtab/";
/// Payload of a packet of 1500 bytes: 20 are IP's (RFC 791), 20 TCP's (RFC 9293), and 12 its
/// timestamps (RFC 7323 §3.2).
const PACKET: Bytes = Bytes::new(1448);

/// Checks of what cannot be seen of the kernel's TCP, or does not hold for TCP, and why.
const UNSEEN: [(&str, &str); 8] = [
    ("minimum-window", LOSS_WINDOW),
    ("persistent-congestion", LOSS_WINDOW),
    ("probes", "TCP has no probe packets: after a timeout it sends again (RFC 6298 §5)"),
    ("window-kept", SAMPLED),
    ("pacing", SAMPLED),
    ("field-fast-long", FAST),
    ("field-overshoot", FAST),
    ("field-short-path", "not observable there: links in real time are exact to 0.1 ms or so"),
];
const LOSS_WINDOW: &str = "after a timeout TCP's window is a packet (RFC 5681 §3.1)";
const SAMPLED: &str = "not observable there: TCP_INFO is sampled, and packets leave in between";
const FAST: &str = "not observable there: links in real time do not carry as many packets";

/// A congestion control of the kernel's TCP.
pub struct OnKernel {
    name: String,
    family: Family,
    governor: Governor,
    rig: Arc<Rig>,
}

impl OnKernel {
    /// What follows `kernel:` in its name: `cubic`, `reno`, `bbr` or another of the kernel's own, or
    /// `trimtab/` and the text of an algorithm that is in eBPF. What it loads is gone with the value
    /// and its trials.
    ///
    /// # Errors
    /// The kernel or eBPF has no such algorithm, or rights or parts of the kernel are missing: one
    /// message that says what to do.
    pub fn named(text: &str) -> Result<Self, RunError> {
        let (governor, ours) = match text.strip_prefix(OURS) {
            Some(text) => {
                let spec: Spec = text.parse()?;
                (Governor::ebpf(spec)?, spec.algorithm().name)
            }
            None => Governor::kernels(text)?,
        };
        if !rustix::process::geteuid().is_root() {
            return Err(RealError::ConformNotRoot.into());
        }
        if let Governor::Kernel(name) = governor {
            admission::offered(name)?;
        }
        let rig = Arc::new(Rig::for_runs(matches!(governor, Governor::Ebpf { .. }))?);
        Ok(Self { name: format!("kernel:{text}"), family: Family::named(ours), governor, rig })
    }
}

impl fmt::Debug for OnKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnKernel").field(&self.name).finish()
    }
}

impl Subject for OnKernel {
    fn name(&self) -> &str {
        &self.name
    }

    fn family(&self) -> Family {
        self.family
    }

    fn is_ours(&self, by: By) -> bool {
        by == By::Algorithm && matches!(self.governor, Governor::Ebpf { .. })
    }

    fn packet(&self) -> Bytes {
        PACKET
    }

    fn observes(&self, check: &Check) -> Result<(), &'static str> {
        let unseen = UNSEEN.iter().find(|(name, _)| *name == check.name);
        unseen.map_or(Ok(()), |(_, reason)| Err(*reason))
    }

    fn at_once(&self) -> Option<usize> {
        self.rig.jobs()
    }

    fn warnings(&self) -> Vec<String> {
        self.rig.warnings().into_iter().map(|warning| format!("{}: {warning}", self.name)).collect()
    }

    fn begin(&self, scene: &Scene) -> Result<Box<dyn Trial>, RunError> {
        Ok(Box::new(KernelTrial::begin(self, scene)?))
    }
}

/// A connection in the kernel, in real time.
struct KernelTrial {
    rig: Arc<Rig>,
    family: Family,
    topology: Topology,
    crew: Option<Crew>,
    flow: Flow,
    clock: Clock,
    /// What was last seen of the connection.
    info: TcpInfo,
}

impl KernelTrial {
    fn begin(subject: &OnKernel, scene: &Scene) -> Result<Self, RealError> {
        let OnKernel { family, governor, rig, .. } = subject;
        let config = |(down, up)| Config { down, up, seed: scene.seed, log: None };
        let (app, start) = (scene.app.clone(), Time::ZERO);
        let members = vec![Member { governor: governor.clone(), app, start }];
        let mut topology = course::topology()?;
        let path = config(emulated::path(scene.rtt.at(start)));
        let connections = course::establish(rig, &mut topology, &members, &path)?;
        // The looks are to be at their times.
        hurry();
        topology.start(&config(emulated::scene(scene)))?;
        let clock = Clock::start();
        let mut crew = Crew::default();
        let first = crew.begin(members, connections, clock, Time::MAX).and_then(|mut flows| {
            let flow = flows.pop().ok_or(RealError::Thread)?;
            let after = Duration::ZERO;
            let info = sys::info(&flow.connection.server).ok_or(RealError::Ended { after })?;
            Ok((flow, info))
        });
        match first {
            Ok((flow, info)) => {
                let (rig, crew) = (Arc::clone(rig), Some(crew));
                Ok(Self { rig, family: *family, topology, crew, flow, clock, info })
            }
            Err(e) => {
                // The first error is the one to tell.
                let _ = crew.end();
                Err(e)
            }
        }
    }
}

impl Trial for KernelTrial {
    fn run_until(&mut self, until: Time) -> Result<(), RunError> {
        self.clock.sleep_until(until);
        if INTERRUPTED.load(Ordering::Relaxed) {
            return Err(RealError::Interrupted.into());
        }
        let after = self.clock.now().since(Time::ZERO);
        self.info = sys::info(&self.flow.connection.server).ok_or(RealError::Ended { after })?;
        Ok(())
    }

    fn look(&mut self) -> Look {
        let info = &self.info;
        // While losses are repaired, the window nears the threshold step by step (RFC 6937); what
        // the algorithm has decided is the threshold. BBR has none.
        let reduces = info.is_reducing && !self.family.is_bbr();
        let window = if reduces { info.threshold.min(info.window) } else { info.window };
        Look {
            at: self.clock.now(),
            window: info.packet * u64::from(window),
            inflight: info.packet * u64::from(info.inflight),
            sent: info.sent,
            lost: info.resent,
            goodput: self.flow.received(),
            srtt: info.srtt,
            pacing: self.family.is_bbr().then_some(info.pacing),
        }
    }
}

impl Drop for KernelTrial {
    fn drop(&mut self) {
        // The verdict is there already, and the link's report is for the warnings.
        if let Ok(report) = self.topology.stop() {
            self.rig.add(&report);
        }
        let _ = self.crew.take().map(Crew::end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_checks_and_those_of_too_many_packets_are_fast() {
        for (name, reason) in UNSEEN {
            let check = trimtab_lab::conform::checks().find(|check| check.name == name).unwrap();
            if reason == FAST {
                assert!(check.scene.starts_with("500 Mbit/s"), "{name}: {}", check.scene);
            }
        }
    }

    /// Before any right is asked for.
    #[test]
    fn names_that_the_kernel_does_not_have_are_refused() {
        for (name, says) in [
            ("newreno", "cubic, bbr, reno"),
            ("trimtab/westwood", "eBPF has no westwood; it has copa, cubic, bbr, bbr3 and vivace"),
            ("trimtab/cubik", "no such algorithm"),
        ] {
            let problem = OnKernel::named(name).unwrap_err().to_string();
            assert!(problem.contains(says), "{name}: {problem}");
        }
    }
}

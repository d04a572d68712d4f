//! Which schemes the kernel has, and under which names.

use std::fs;
use std::net::TcpListener;

use rustix::net::sockopt::set_tcp_congestion;
use trimtab_cc::Spec;
use trimtab_cc::muses::Trees;
use trimtab_datapath::{Datapath as _, can_run};
use trimtab_kernel::{Algorithm, Datapath};
use trimtab_lab::run::prepare::{Prepared, PreparedApp};
use trimtab_lab::scenario::{Scenario, TransportKind};
use trimtab_steer::Steerer;
use trimtab_steer::distill::Distill;
use trimtab_steer::muses::Policy;
use trimtab_steer::scheme::{Demand, Scheme, SchemeKind};

use crate::error::RealError;

/// What governs a connection in the kernel.
#[derive(Clone, Debug)]
pub enum Governor {
    /// The kernel's own algorithm of this name (`TCP_CONGESTION`).
    Kernel(&'static str),
    /// An algorithm in eBPF, with the knobs of this spec, and perhaps steered from user space.
    Ebpf {
        /// Which, at the beginning.
        algorithm: Algorithm,
        /// Its knobs.
        spec: Spec,
        /// What steers it; `None` leaves algorithm and knobs as they are.
        steerer: Option<Steerer>,
    },
    /// Trees in eBPF, of which user space chooses one for the connection.
    Trees {
        /// The model.
        trees: Trees<'static>,
        /// What takes over when its guard speaks, with its knobs; `None` lets it go on.
        safe: Option<(Algorithm, Spec)>,
    },
}

/// The kernel's name of an algorithm of ours that it may have.
const KERNEL: [(&str, &str); 6] = [
    ("cubic", "cubic"),
    ("bbr", "bbr"),
    ("newreno", "reno"),
    ("vegas", "vegas"),
    ("westwood", "westwood"),
    ("illinois", "illinois"),
];
/// Those that every Linux has, or nearly.
const USUAL: &str = "the kernel has cubic, bbr and newreno, and eBPF brings copa, bbr with knobs, \
                     bbr3, vivace, mortise, mortise-disc, muses, treeg, and floo and select:… \
                     among those; vegas, westwood and illinois run where the kernel offers them";

/// Where a scheme's algorithm is in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is the kernel's own, of this name.
    Kernel(&'static str),
    /// It is in eBPF.
    Ebpf(Algorithm),
    /// They are several, in eBPF.
    Several,
}

impl Place {
    /// Where a scheme's algorithm is.
    ///
    /// # Errors
    /// [`RealError::Scheme`] when it is nowhere, or in a module that this kernel lacks.
    pub(crate) fn of(scheme: &Scheme) -> Result<Self, RealError> {
        let refuse = |problem: String| RealError::Scheme {
            scheme: scheme.label().to_owned(),
            problem,
            available: USUAL,
        };
        match scheme.kind().demand() {
            Demand::Knobs(name) => {
                let wrong = || refuse(format!("eBPF has no {name} whose knobs could be turned"));
                Algorithm::from_name(name).map(Self::Ebpf).ok_or_else(wrong)
            }
            Demand::Algorithm(spec) => match ebpf(spec) {
                Some(algorithm) => Ok(Self::Ebpf(algorithm)),
                None => kernels(scheme, spec).map(Self::Kernel).map_err(refuse),
            },
            Demand::Switching => match lacking(scheme.kind()) {
                Some(spec) => Err(refuse(format!(
                    "eBPF has no {}, or not with these knobs, and connections switch only within eBPF",
                    spec.algorithm().name
                ))),
                None => Ok(Self::Several),
            },
            Demand::Network => Err(refuse(
                "it needs floating point, which the kernel does not allow: run it in the simulator"
                    .to_owned(),
            )),
            Demand::Trees(settings) => match settings.safe.as_ref().map(safe) {
                Some(Err(problem)) => Err(refuse(problem)),
                Some(Ok(_)) | None => Ok(Self::Ebpf(Algorithm::Muses)),
            },
            Demand::Plugin => Err(refuse(
                "a plug-in is no program of the kernel's: take --datapath sim or quic".to_owned(),
            )),
            Demand::Stack(_) => Err(refuse(
                "it is a QUIC stack's own: take --datapath quic-virtual or quic".to_owned(),
            )),
            Demand::Start => Err(refuse(
                "connections of the kernel start in its own way: run it in the simulator"
                    .to_owned(),
            )),
            Demand::Foresight => {
                Err(refuse("it is a bound, which only the simulator can compute".to_owned()))
            }
        }
    }
}

impl Governor {
    /// What stands for a scheme in the kernel, for an application; with its learnt policy, where it has one.
    ///
    /// # Errors
    /// [`RealError::Scheme`] when nothing does, or only in a module that this kernel lacks.
    pub fn of(scheme: &Scheme, app: &PreparedApp, prepared: &Prepared) -> Result<Self, RealError> {
        match (Place::of(scheme)?, scheme.kind().demand()) {
            (Place::Kernel(name), _) => Ok(Self::Kernel(name)),
            (Place::Ebpf(_), Demand::Trees(settings)) => {
                let Policy::Trees(trees) = prepared.policy(settings) else {
                    unreachable!("its policy was read before the first run, and is trees")
                };
                let safe = settings.safe.as_ref().and_then(|spec| safe(spec).ok());
                Ok(Self::Trees { trees: *trees, safe })
            }
            (Place::Ebpf(algorithm), _) => {
                let (spec, steerer) = prepared.steering(scheme.kind(), app);
                Ok(Self::Ebpf { algorithm, spec, steerer })
            }
            (Place::Several, _) => {
                let (spec, steerer) = prepared.steering_among(scheme.kind(), app, &runs);
                let algorithm = Algorithm::from_name(spec.algorithm().name)
                    .unwrap_or_else(|| unreachable!("it begins with one that runs"));
                Ok(Self::Ebpf { algorithm, spec, steerer })
            }
        }
    }

    /// One of the kernel's own by the kernel's name, and our name of the same. Whether this kernel
    /// has it: [`offered`].
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn kernels(name: &str) -> Result<(Self, &'static str), String> {
        let Some(&(ours, kernel)) = KERNEL.iter().find(|(_, kernel)| *kernel == name) else {
            let names = KERNEL.map(|(_, kernel)| kernel).join(", ");
            return Err(format!("the kernel's own are {names}; ours are trimtab/ALGORITHM"));
        };
        Ok((Self::Kernel(kernel), ours))
    }

    /// An algorithm in eBPF that nothing steers.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn ebpf(spec: Spec) -> Result<Self, String> {
        let name = spec.algorithm().name;
        let wrong = || format!("eBPF has no {name}; it has copa, cubic, bbr, bbr3 and vivace");
        let algorithm = Algorithm::from_name(name).ok_or_else(wrong)?;
        Ok(Self::Ebpf { algorithm, spec, steerer: None })
    }

    /// What steers its connections, at their beginning.
    pub(crate) fn steerer(&self) -> Option<Steerer> {
        match self {
            Self::Kernel(_) => None,
            Self::Ebpf { steerer, .. } => steerer.clone(),
            Self::Trees { trees, .. } => Some(Steerer::Distill(Distill::new(*trees, None))),
        }
    }
}

/// Whether a running connection can be switched to an algorithm with its knobs.
pub(crate) fn runs(spec: &Spec) -> bool {
    can_run(spec, Datapath::ALGORITHMS)
}

/// What a scheme that switches cannot do without, and eBPF does not have.
fn lacking(kind: &SchemeKind) -> Option<Spec> {
    let needed: Vec<Spec> = match kind {
        SchemeKind::Switch(turns) => turns.specs.clone(),
        SchemeKind::Select(selection) => selection.safe.into_iter().collect(),
        _ => Vec::new(),
    };
    needed.into_iter().find(|spec| !runs(spec))
}

/// The algorithm in eBPF that takes over as the fallback, with its knobs. CUBIC is Linux's there.
fn safe(spec: &Spec) -> Result<(Algorithm, Spec), String> {
    let name = spec.algorithm().name;
    let algorithm = Algorithm::from_name(name)
        .filter(|algorithm| algorithm.neutral().as_fallback().is_some())
        .ok_or_else(|| format!("safe={name}: only copa, cubic and bbr take over in the kernel"))?;
    let has = |knob: &str| knob == "linux" || algorithm.knobs().iter().any(|k| k.name == knob);
    match spec.settings().iter().find(|(knob, _)| !has(knob)) {
        Some((knob, _)) => Err(format!("safe={name}: in the kernel it has no knob {knob}")),
        None => Ok((algorithm, *spec)),
    }
}

/// The algorithm of ours that stands for this one: where the kernel has none, and where its own has no knobs to be set.
fn ebpf(spec: &Spec) -> Option<Algorithm> {
    let name = spec.algorithm().name;
    let is_kernels = KERNEL.iter().any(|(ours, _)| *ours == name);
    match Algorithm::from_name(name)? {
        // In the simulator it is RFC 9438's, in eBPF Linux's: with knobs neither stands for the other.
        Algorithm::Cubic => None,
        _ if is_kernels && spec.settings().is_empty() => None,
        ours => Some(ours),
    }
}

/// The kernel's name of an algorithm, if this kernel has it as it is asked for.
fn kernels(scheme: &Scheme, spec: &Spec) -> Result<&'static str, String> {
    let name = spec.algorithm().name;
    let Some(&(_, kernel)) = KERNEL.iter().find(|(ours, _)| *ours == name) else {
        return Err("Linux has no such congestion control".to_owned());
    };
    if !scheme.is_as_in_linux() {
        return Err(format!(
            "the kernel's {kernel} has no knobs for a single connection; name it without any"
        ));
    }
    offered(kernel)
}

/// One of the kernel's own, if this kernel has it, and this user may take it.
///
/// # Errors
/// What there is, and what to do.
pub(crate) fn offered(kernel: &'static str) -> Result<&'static str, String> {
    // Asking for it loads its module, where there is one.
    let offers = TcpListener::bind("127.0.0.1:0")
        .and_then(|socket| Ok(set_tcp_congestion(&socket, kernel)?))
        .is_ok();
    if offers { Ok(kernel) } else { Err(missing(kernel)) }
}

fn missing(kernel: &str) -> String {
    let offered = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let offered = offered.unwrap_or_default();
    format!(
        "this kernel does not offer {kernel}, only: {}; load its module with `modprobe tcp_{kernel}`, or leave it out",
        offered.trim()
    )
}

/// Checks what only the simulator does.
pub(crate) fn check(scenario: &Scenario) -> Result<(), RealError> {
    if scenario.transport != TransportKind::Tcp {
        let problem = "the kernel's datapath is TCP: run it with --transport tcp, or set transport = \"tcp\" in the \
                       scenario";
        return Err(RealError::Scenario(problem.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use trimtab_lab::run::prepare::prepare;
    use trimtab_steer::Mortise;

    use super::*;

    fn of(scheme: &str) -> Result<Governor, String> {
        let scenario = format!(
            "cc = [{scheme:?}]\ntraces = [\"constant:8Mbit/s\"]\n[[app]]\nkind = \"download\"\n"
        );
        let plan = Scenario::parse(&scenario).unwrap().plan().unwrap();
        let prepared = prepare(&plan).unwrap();
        let scheme = scheme.parse().unwrap();
        Governor::of(&scheme, &prepared.apps[0], &prepared).map_err(|e| e.to_string())
    }

    /// By default the fallback is `copa:mvfst`, and its knobs go with it.
    #[test]
    fn muses_is_trees_and_what_is_safe() {
        for name in ["muses", "treeg"] {
            let small = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/trees/small");
            let governor = of(&format!("{name}:model={small}"));
            let Ok(Governor::Trees { trees, safe: Some((Algorithm::Copa, spec)) }) = governor
            else {
                panic!("{name} is trees");
            };
            assert_eq!(trees.count(), 2);
            assert_eq!(spec.settings(), [("delta", 0.04), ("competitive", 0.0)]);
        }
        assert!(matches!(of("treeg:safe=none"), Ok(Governor::Trees { safe: None, .. })));
        let cubic = of("muses:safe=cubic:linux");
        assert!(matches!(cubic, Ok(Governor::Trees { safe: Some((Algorithm::Cubic, _)), .. })));
        let Some(Steerer::Distill(distill)) = of("muses").unwrap().steerer() else {
            panic!("it chooses")
        };
        let shipped = Trees::parse(include_bytes!("muses.trees")).unwrap();
        assert_eq!(distill.tree(), shipped.first(), "the model's first");
    }

    /// Linux has no BBRv3 of its own.
    #[test]
    fn bbr3_is_ours() {
        let Ok(Governor::Ebpf { algorithm: Algorithm::Bbr3, spec, steerer: None }) =
            of("bbr3:loss_thresh=0.05")
        else {
            panic!("it is in eBPF");
        };
        assert_eq!(spec.settings(), [("loss_thresh", 0.05)]);
    }

    #[test]
    fn names_are_the_kernels() {
        // Every Linux has these two built in.
        for (ours, theirs) in [("cubic", "cubic"), ("cubic:linux", "cubic"), ("newreno", "reno")] {
            let governor = of(ours);
            assert!(matches!(governor, Ok(Governor::Kernel(name)) if name == theirs), "{ours}");
        }
        let Ok(Governor::Ebpf { spec, steerer: None, .. }) = of("copa:mvfst") else {
            panic!("copa is in eBPF");
        };
        assert_eq!(spec.settings(), [("delta", 0.04), ("competitive", 0.0)]);
    }

    /// The kernel's own has no knobs; with any, even as it has it, ours stands for it, so that both
    /// can run side by side.
    #[test]
    fn bbr_with_knobs_is_ours() {
        let Ok(Governor::Ebpf { algorithm: Algorithm::Bbr, spec, steerer: None }) =
            of("bbr:probe_gain=1.25")
        else {
            panic!("it is in eBPF");
        };
        assert_eq!(spec.settings(), [("probe_gain", 1.25)]);
        let place = Place::of(&"bbr".parse().unwrap());
        assert!(!matches!(place, Ok(Place::Ebpf(_))), "{place:?}");
    }

    #[test]
    fn mortise_is_steered_copa() {
        for (name, discrete) in [("mortise:sigma=0.3", false), ("mortise-disc:sigma=0.3", true)] {
            let Ok(Governor::Ebpf { spec, steerer: Some(Steerer::Mortise(m)), .. }) = of(name)
            else {
                panic!("{name} is steered");
            };
            assert_eq!(spec.settings(), Mortise::algorithm().settings());
            assert_eq!((m.config().discrete, m.config().sigma), (discrete, 0.3));
        }
    }

    #[test]
    fn mortise_of_the_paper_is_steered_copa_without_our_settings() {
        let Ok(Governor::Ebpf { algorithm: Algorithm::Copa, spec, steerer: Some(of_paper) }) =
            of("mortise:paper")
        else {
            panic!("it is steered");
        };
        assert!(matches!(of_paper, Steerer::Paper(_)));
        assert_eq!(spec.settings(), [("delta", 0.1)]);
    }

    /// A policy begins with its own first candidate, with the knobs that it learnt.
    #[test]
    fn selections_begin_with_their_first_candidate_and_choose_what_ebpf_has() {
        for (name, first, candidates) in [
            ("floo", "copa", "cubic bbr copa"),
            ("floo:counterfactual:look=2s", "copa", "cubic bbr copa copa"),
            ("select:antelope", "copa", "cubic bbr copa"),
            ("select:antelope:paper", "cubic", "bbr cubic"),
            ("select:antelope:copa", "copa", "copa copa copa copa copa"),
            ("select:power", "cubic", "cubic bbr copa"),
            ("floo:shared", "copa", "copa copa copa bbr bbr3 cubic"),
        ] {
            let Ok(Governor::Ebpf { algorithm, spec, steerer: Some(Steerer::Select(selector)) }) =
                of(name)
            else {
                panic!("{name} selects");
            };
            assert_eq!((algorithm.name(), spec.algorithm().name), (first, first), "{name}");
            let all = selector.config().candidates.iter().map(|spec| spec.algorithm().name);
            assert_eq!(all.collect::<Vec<_>>().join(" "), candidates, "{name}");
            assert!(selector.algorithm().is_same(&spec), "{name}");
        }
        let both = of("floo+mortise");
        assert!(matches!(both, Ok(Governor::Ebpf { steerer: Some(Steerer::Both(_)), .. })));
        let turns = of("switch:copa,cubic:every=1s");
        assert!(matches!(turns, Ok(Governor::Ebpf { steerer: Some(Steerer::Schedule(_)), .. })));
    }

    #[test]
    fn other_algorithms_in_ebpf_are_steered_likewise() {
        for (name, algorithm) in [
            ("mortise:vivace", Algorithm::Vivace),
            ("mortise:cubic", Algorithm::Cubic),
            ("mortise:bbr3", Algorithm::Bbr3),
        ] {
            let governor = of(name);
            let Ok(Governor::Ebpf { algorithm: of, steerer: Some(Steerer::Tuner(_)), .. }) =
                governor
            else {
                panic!("{name} is steered");
            };
            assert_eq!(of, algorithm);
        }
    }

    #[test]
    fn what_the_kernel_has_not_is_refused_with_what_it_has() {
        for (name, why) in [
            ("omniscient", "only the simulator"),
            ("oracle:copa", "only the simulator"),
            ("oracle-dynamic:copa", "only the simulator"),
            ("muses:lstm", "floating point"),
            ("muses:safe=vegas", "only copa, cubic and bbr take over"),
            ("muses:safe=bbr3", "only copa, cubic and bbr take over"),
            ("ledbat", "Linux has no such"),
            ("cubic:beta=0.5", "no knobs"),
            ("switch:cubic,westwood:every=2s", "eBPF has no westwood"),
            ("floo:safe=westwood", "eBPF has no westwood"),
        ] {
            let e = of(name).unwrap_err();
            assert!(e.starts_with(&format!("{name}: ")) && e.contains(why), "{e}");
            assert!(e.contains("cubic, bbr and newreno") && e.contains("mortise-disc"), "{e}");
        }
        // Whether this one is offered depends on the machine; what to do is said where it is not.
        if let Err(e) = of("vegas") {
            assert!(e.contains("modprobe tcp_vegas"), "{e}");
        }
    }
}

//! Whether congestion controllers do what their specifications say: behaviours that show from
//! outside, each in a scene of its own, with a verdict.
//!
//! A [`Subject`] is a congestion control on a transport. Checks see of it what a [`Look`] has, so
//! the same check serves the simulator, a QUIC stack, and others' controllers. A new check is an
//! entry in the table of its specification; a new kind of subject is an implementation of
//! [`Subject`].
//!
//! Read `check.rs` first, then `rfc9002.rs`.

mod bbr;
mod check;
mod field;
mod film;
mod rfc9002;
mod rfc9406;
mod rfc9438;
mod simulated;
mod subject;
mod table;

use serde::{Serialize, Serializer};

use crate::run::pool::{Effort, Interrupted, run_all};

pub use check::{By, Check, Finding};
pub use simulated::Simulated;
pub use subject::{Family, Look, Scene, Subject, Trial};

/// The schema that [`Conformance::schema`] names.
pub const SCHEMA: &str = "trimtab.conform/1";

/// Every check, by specification.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    [rfc9002::CHECKS, rfc9438::CHECKS, rfc9406::CHECKS, bbr::CHECKS, field::CHECKS]
        .into_iter()
        .flatten()
}

/// What a check says of a subject.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It was measured. Whether it conforms: [`Finding::holds`].
    Measured(Finding),
    /// The transport ended the connection, and what it said.
    Ended(String),
    /// It does not apply, or cannot be seen there, and why.
    NotApplicable(&'static str),
}

impl Verdict {
    /// Whether nothing is wrong.
    pub fn conforms(&self) -> bool {
        match self {
            Self::Measured(finding) => finding.holds(),
            Self::Ended(_) => false,
            Self::NotApplicable(_) => true,
        }
    }

    /// Its word: `pass`, `fail`, `ended` or `n/a`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Measured(finding) if finding.holds() => "pass",
            Self::Measured(_) => "fail",
            Self::Ended(_) => "ended",
            Self::NotApplicable(_) => "n/a",
        }
    }
}

/// A check of a subject.
#[derive(Clone, Debug)]
pub struct Row {
    /// The check.
    pub check: &'static Check,
    /// What was checked.
    pub subject: String,
    /// Whether what brings the behaviour about is Trimtab's.
    pub ours: bool,
    /// What came out.
    pub verdict: Verdict,
}

/// Checks of several subjects.
#[derive(Clone, Debug, Serialize)]
pub struct Conformance {
    /// `trimtab.conform/1`.
    pub schema: &'static str,
    /// Every check of every subject, by check.
    pub rows: Vec<Row>,
}

impl Conformance {
    /// Whether nothing of Trimtab's fails a check.
    pub fn holds(&self) -> bool {
        !self.rows.iter().any(|row| row.ours && !row.verdict.conforms())
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// A row as JSON has it; what is not finite becomes `null`.
        #[derive(Serialize)]
        struct Flat<'a> {
            check: &'a str,
            clause: &'a str,
            subject: &'a str,
            ours: bool,
            verdict: &'a str,
            value: Option<f64>,
            least: Option<f64>,
            most: Option<f64>,
            unit: Option<&'a str>,
            reason: Option<&'a str>,
        }
        let finite = |value: f64| value.is_finite().then_some(value);
        let (finding, reason) = match &self.verdict {
            Verdict::Measured(finding) => (Some(*finding), None),
            Verdict::Ended(reason) => (None, Some(reason.as_str())),
            Verdict::NotApplicable(reason) => (None, Some(*reason)),
        };
        let of = |part: fn(&Finding) -> f64| finding.as_ref().map(part).and_then(finite);
        Flat {
            check: self.check.name,
            clause: self.check.clause,
            subject: &self.subject,
            ours: self.ours,
            verdict: self.verdict.word(),
            value: of(|finding| finding.value),
            least: of(|finding| finding.least),
            most: of(|finding| finding.most),
            unit: finding.map(|finding| finding.unit),
            reason,
        }
        .serialize(serializer)
    }
}

/// A check of a subject that is to be done.
type Job<'a> = (&'static Check, &'a dyn Subject);

/// Does these checks of these subjects, on several cores. Those in real time come last.
///
/// # Errors
/// The user asked to stop.
pub fn conform(
    checks: &[&'static Check],
    subjects: &[Box<dyn Subject>],
    effort: Effort,
) -> Result<Conformance, Interrupted> {
    let each = |&check: &&'static Check| subjects.iter().map(move |s| (check, s.as_ref()));
    let jobs: Vec<(usize, Job<'_>)> = checks.iter().flat_map(each).enumerate().collect();
    let (virtual_time, real_time): (Vec<_>, Vec<_>) =
        jobs.into_iter().partition(|(_, (_, subject))| subject.at_once().is_none());
    let mut rows = run_all(&virtual_time, effort, |&(place, job)| (place, row(job)))?;
    let at_once = real_time.iter().filter_map(|(_, (_, subject))| subject.at_once()).min();
    let effort = Effort { jobs: effort.jobs.or(at_once), ..effort };
    rows.extend(run_all(&real_time, effort, |&(place, job)| (place, row(job)))?);
    rows.sort_by_key(|(place, _)| *place);
    Ok(Conformance { schema: SCHEMA, rows: rows.into_iter().map(|(_, row)| row).collect() })
}

/// Does a check of a subject.
fn row((check, subject): Job<'_>) -> Row {
    let applies = (check.applies)(subject).and_then(|()| subject.observes(check));
    let verdict = match applies.map(|()| (check.measure)(subject)) {
        Err(reason) => Verdict::NotApplicable(reason),
        Ok(Ok(finding)) => Verdict::Measured(finding),
        Ok(Err(reason)) => Verdict::Ended(reason.to_string()),
    };
    let (name, ours) = (subject.name().to_owned(), subject.is_ours(check.by));
    Row { check, subject: name, ours, verdict }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use trimtab_units::{Bytes, Time};

    use super::*;
    use crate::report::table::Style;
    use crate::run::datapath::RunError;

    fn simulated(name: &str) -> Box<dyn Subject> {
        Box::new(Simulated::new(name).unwrap())
    }

    #[test]
    fn trimtabs_algorithms_conform_in_the_simulator() {
        let subjects = ["newreno", "cubic", "bbr", "bbr3", "copa"].map(simulated);
        let checks: Vec<_> = checks().collect();
        let effort = Effort { jobs: Some(2), quiet: true };
        let conformance = conform(&checks, &subjects, effort).unwrap();
        let table = conformance.render(Style { width: 120, lines: false });
        assert!(conformance.holds(), "{table}");
        assert_eq!(conformance.rows.len(), checks.len() * subjects.len());
        assert!(table.ends_with("do not apply; --json has the reasons.\n"), "{table}");
    }

    /// CUBIC with another factor, steepness or slow start is found out.
    #[test]
    fn what_departs_fails() {
        let effort = Effort { jobs: Some(2), quiet: true };
        for (name, fails) in [
            ("cubic:beta=0.8", "cubic-reduction"),
            ("cubic:c=1", "cubic-growth"),
            ("cubic:fast_convergence=0", "fast-convergence"),
            ("cubic:hystart=0", "hystart-exit"),
            ("cubic:hystart=2", "hystart-css"),
            ("cubic:hystart=2", "hystart-resume"),
        ] {
            let check: Vec<_> = checks().filter(|check| check.name == fails).collect();
            let conformance = conform(&check, &[simulated(name)], effort).unwrap();
            assert!(!conformance.holds(), "{name} passes {fails}");
        }
    }

    #[test]
    fn names_are_unique_and_a_scene_that_does_not_come_about_fails() {
        let mut names: Vec<_> = checks().map(|check| check.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(!Finding::new(f64::NAN, f64::NEG_INFINITY, f64::INFINITY, "s").holds());
    }

    #[test]
    fn json_has_a_row_for_each_check_of_each_subject() {
        let check: Vec<_> =
            checks().filter(|c| ["slow-start", "bbr-drain"].contains(&c.name)).collect();
        let effort = Effort { jobs: Some(1), quiet: true };
        let conformance = conform(&check, &[simulated("newreno")], effort).unwrap();
        let json = serde_json::to_value(&conformance).unwrap();
        assert_eq!(json["schema"], SCHEMA);
        let [slow_start, drain] = [0, 1].map(|row| &json["rows"][row]);
        assert_eq!(
            (&slow_start["check"], &slow_start["verdict"]),
            (&"slow-start".into(), &"pass".into())
        );
        assert!((slow_start["value"].as_f64().unwrap() - 1.0).abs() < 0.05);
        assert_eq!((&drain["verdict"], &drain["reason"]), (&"n/a".into(), &"it is not BBR".into()));
        assert!(drain["value"].is_null());
    }

    /// A subject in real time, as far as the order of checks goes.
    struct InRealTime {
        inner: Simulated,
        running: Arc<AtomicBool>,
    }

    struct RealTrial {
        inner: Box<dyn Trial>,
        running: Arc<AtomicBool>,
    }

    impl Subject for InRealTime {
        fn name(&self) -> &str {
            "real"
        }

        fn family(&self) -> Family {
            self.inner.family()
        }

        fn is_ours(&self, by: By) -> bool {
            self.inner.is_ours(by)
        }

        fn packet(&self) -> Bytes {
            self.inner.packet()
        }

        fn observes(&self, check: &Check) -> Result<(), &'static str> {
            if check.name == "pacing" { Err("not seen there") } else { Ok(()) }
        }

        fn at_once(&self) -> Option<usize> {
            Some(1)
        }

        fn begin(&self, scene: &Scene) -> Result<Box<dyn Trial>, RunError> {
            assert!(!self.running.swap(true, Ordering::SeqCst), "two at once");
            let (inner, running) = (self.inner.begin(scene)?, Arc::clone(&self.running));
            Ok(Box::new(RealTrial { inner, running }))
        }
    }

    impl Trial for RealTrial {
        fn run_until(&mut self, until: Time) -> Result<(), RunError> {
            self.inner.run_until(until)
        }

        fn look(&mut self) -> Look {
            self.inner.look()
        }
    }

    impl Drop for RealTrial {
        fn drop(&mut self) {
            self.running.store(false, Ordering::SeqCst);
        }
    }

    #[test]
    fn checks_in_real_time_are_one_at_a_time_and_rows_by_check() {
        let names = ["initial-window", "slow-start", "one-reduction", "pacing"];
        let these: Vec<_> = checks().filter(|check| names.contains(&check.name)).collect();
        let inner = Simulated::new("newreno").unwrap();
        let real = InRealTime { inner, running: Arc::default() };
        let subjects = [Box::new(real), simulated("cubic")];
        let effort = Effort { jobs: None, quiet: true };
        let rows = conform(&these, &subjects, effort).unwrap().rows;
        let order: Vec<_> = rows.iter().map(|row| (row.check.name, &*row.subject)).collect();
        let by_check = |name| [(name, "real"), (name, "sim:cubic")];
        assert_eq!(order, names.into_iter().flat_map(by_check).collect::<Vec<_>>());
        assert!(rows.iter().all(|row| row.verdict.conforms()));
        assert_eq!(rows[6].verdict, Verdict::NotApplicable("not seen there"));
    }
}

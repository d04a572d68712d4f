//! The checks of `trimtab conform` on QUIC stacks: Trimtab's algorithms pass, controllers that were
//! made wrong fail the checks of what was made wrong, and the stacks' own fail what the book says.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics, NewRenoConfig};
use trimtab_lab::conform::{By, Check, Conformance, Family, Subject, checks, conform};
use trimtab_lab::run::pool::Effort;
use trimtab_quic::{OnNoq, OnQuinn};

/// What is wrong with a controller.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    /// It takes no notice of losses.
    IgnoresLoss,
    /// It halves its window for every batch of losses.
    HalvesForEach,
    /// It grows though the application does not use its window.
    GrowsUnused,
    /// Its window is a packet.
    OnePacket,
    /// It never goes below half of the window that it had.
    SparesItself,
}

/// noq's `NewReno`, made wrong.
#[derive(Debug)]
struct Mutant {
    inner: Box<dyn Controller>,
    wrong: Wrong,
    mtu: u64,
}

impl Controller for Mutant {
    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let app_limited = app_limited && !matches!(self.wrong, Wrong::GrowsUnused);
        self.inner.on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        let (sent, persistent) = match self.wrong {
            Wrong::IgnoresLoss => return,
            Wrong::HalvesForEach => (now, is_persistent_congestion),
            Wrong::SparesItself => (sent, false),
            Wrong::GrowsUnused | Wrong::OnePacket => (sent, is_persistent_congestion),
        };
        self.inner.on_congestion_event(now, sent, persistent, is_ecn, lost_bytes, largest_lost_pn);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        if matches!(self.wrong, Wrong::OnePacket) { self.mtu } else { self.inner.window() }
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = self.inner.metrics();
        metrics.congestion_window = self.window();
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), ..*self })
    }

    fn initial_window(&self) -> u64 {
        self.window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

struct Mutants(Wrong);

impl ControllerFactory for Mutants {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let mtu = u64::from(current_mtu);
        let mut config = NewRenoConfig::default();
        config.initial_window(10 * mtu);
        Box::new(Mutant { inner: Arc::new(config).build(now, current_mtu), wrong: self.0, mtu })
    }
}

fn run(checks: &[&'static Check], subjects: &[Box<dyn Subject>]) -> Conformance {
    conform(checks, subjects, Effort { jobs: Some(2), quiet: true }).unwrap()
}

/// The names of the checks that a subject fails.
fn failed(conformance: &Conformance) -> Vec<&'static str> {
    let failed = conformance.rows.iter().filter(|row| !row.verdict.conforms());
    failed.map(|row| row.check.name).collect()
}

fn named(names: &[&str]) -> Vec<&'static Check> {
    checks().filter(|check| names.contains(&check.name)).collect()
}

/// Checks of many packets, which take seconds each on a busy machine.
const SLOW: [&str; 7] = [
    "field-fast-long",
    "field-overshoot",
    "field-bad-start",
    "bbr-random-loss",
    "bbr-rise",
    "bbr-fall",
    "bbr-policer",
];

#[test]
fn trimtabs_algorithms_conform_on_noq() {
    let names = ["trimtab/newreno", "trimtab/cubic", "trimtab/bbr3"];
    let subject = |name| -> Box<dyn Subject> { Box::new(OnNoq::named(name).unwrap()) };
    let quick = checks().filter(|check| check.by == By::Algorithm && !SLOW.contains(&check.name));
    let conformance = run(&quick.collect::<Vec<_>>(), &names.map(subject));
    println!(
        "{}",
        conformance.render(trimtab_lab::report::table::Style { width: 120, lines: false })
    );
    assert!(conformance.holds(), "{:?}", failed(&conformance));
}

#[test]
fn wrong_controllers_fail_the_checks_of_what_is_wrong() {
    let these = named(&[
        "initial-window",
        "minimum-window",
        "reno-reduction",
        "one-reduction",
        "persistent-congestion",
        "application-limited",
    ]);
    for (wrong, fails) in [
        (
            Wrong::IgnoresLoss,
            // Where a third is lost, its windows have more gaps than noq bears, which ends the connection.
            &["minimum-window", "reno-reduction", "one-reduction", "persistent-congestion"][..],
        ),
        (Wrong::HalvesForEach, &["one-reduction"]),
        (Wrong::GrowsUnused, &["application-limited"]),
        (
            Wrong::OnePacket,
            &[
                "initial-window",
                "minimum-window",
                "reno-reduction",
                "one-reduction",
                "persistent-congestion",
            ],
        ),
        (Wrong::SparesItself, &["persistent-congestion"]),
    ] {
        let mutant = OnNoq::with("mutant", Family::Reno, Arc::new(Mutants(wrong))).unwrap();
        assert_eq!(failed(&run(&these, &[Box::new(mutant)])), fails, "{wrong:?}");
    }
}

/// What `docs/reference/conformance.md` says of noq 1.4. Where a newer noq passes, the page changes.
#[test]
fn noqs_own_controllers_fail_what_the_page_says() {
    let of = |name, these: &[&str]| {
        failed(&run(&named(these), &[Box::new(OnNoq::named(name).unwrap())]))
    };
    let cubic = ["initial-window", "reno-friendly", "reno-friendly-beyond", "cubic-idle"];
    assert_eq!(of("cubic", &cubic), ["initial-window", "reno-friendly-beyond", "cubic-idle"]);
    let reno = ["initial-window", "reno-reduction", "reno-avoidance", "persistent-congestion"];
    assert_eq!(of("newreno", &reno), ["initial-window"]);
    let bbr3 = ["bbr-startup-exit", "bbr-bandwidth", "field-limited-burst"];
    assert_eq!(of("bbr3", &bbr3), ["bbr-bandwidth", "field-limited-burst"]);
}

/// The same of quinn 0.11.
#[test]
fn quinns_own_controllers_fail_what_the_page_says() {
    let of = |name, these: &[&str]| {
        failed(&run(&named(these), &[Box::new(OnQuinn::named(name).unwrap())]))
    };
    let cubic = ["initial-window", "cubic-reduction", "reno-friendly-beyond", "cubic-idle"];
    assert_eq!(of("cubic", &cubic), ["initial-window", "reno-friendly-beyond", "cubic-idle"]);
    let reno = ["slow-start", "reno-reduction", "reno-avoidance", "persistent-congestion"];
    assert_eq!(of("newreno", &reno), [""; 0]);
    let bbr = ["initial-window", "window-kept", "bbr-probe-rtt", "field-standing-queue"];
    assert_eq!(of("bbr", &bbr), ["initial-window", "bbr-probe-rtt", "field-standing-queue"]);
    let problem = OnQuinn::named("copa").unwrap_err().to_string();
    assert!(problem.contains("newreno, cubic and bbr"), "{problem}");
}

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use trimtab_cc::migrate::Switch;
use trimtab_cc::muses::{BINS, COMPONENTS, Counts, Trees};
use trimtab_cc::{Copa, Phase};
use trimtab_datapath::{Alarm, Algorithm, By, Error, Switching, Totals, Towards};
use trimtab_steer::{KnobValues, Mortise, Report, Responses};
use trimtab_units::{Bytes, Rate};

use super::*;
use crate::config::Mode;
use crate::datapath::{ALGORITHMS, algorithm, named};
use crate::kernel::sock_diag::own_netns;

mod arms;
mod fleet;
mod guard;
mod learnt;
#[path = "../../tests/agent/model.rs"]
mod model;
mod operate;
mod sleep;
mod study;
mod trees;

/// What the log would have.
fn told(notes: Vec<Note>) -> Vec<String> {
    notes.into_iter().map(|note| note.to_string()).collect()
}

/// A connection of the tests: a link of 12 Mbit/s and 20 ms on which Copa keeps its queue, and CUBIC one of 80 ms.
#[derive(Debug)]
struct Pipe {
    identity: Identity,
    knobs: BTreeMap<String, f64>,
    acks: u64,
    loss: f64,
    /// How far the ends of the round-trip times of a report are from their mean.
    jitter: Duration,
    /// Its buffer is so short that CUBIC loses 7.7 % of the packets, and so does Copa with other knobs than its own.
    shallow: bool,
    open: bool,
    /// This side has closed it, and all was acknowledged.
    closing: bool,
    cookie: Option<u64>,
    /// The next acknowledgement brings an event.
    watched: bool,
    /// Looks at it.
    looks: u64,
    /// To what, whether with knobs, and how.
    switches: Vec<(Algorithm, bool, Switch)>,
    /// Its throughput, as a share of 12 Mbit/s.
    share: f64,
    /// Of Muses' states, in which segment all of them lie.
    segment: usize,
    alarm: Option<Alarm>,
    /// Full speed all the time.
    totals: Totals,
}

impl Pipe {
    fn loss(&self) -> f64 {
        let is_own = Copa::KNOBS.iter().all(|knob| self.knobs[knob.name] == knob.default);
        let is_steered = self.identity.algorithm == "cubic" || !is_own;
        if self.shallow && is_steered { 0.077 } else { self.loss }
    }

    /// So much time passes.
    fn carry(&mut self, time: Duration, now: Time) {
        self.acks += 1;
        let (all, loss) = (Bytes::new(1_500_000).mul_f64(time.as_secs_f64()), self.loss());
        let totals = &mut self.totals;
        totals.sent += all;
        totals.acked += all.mul_f64(1.0 - loss);
        totals.lost += all.mul_f64(loss);
        totals.busy += time;
        totals.rtt_sum += Duration::from_millis(22);
        totals.rtt_count += 1;
        totals.last = now;
    }
}

#[derive(Clone, Debug)]
struct FakeLink {
    pipe: Rc<RefCell<Pipe>>,
    identity: Identity,
    began: Option<Time>,
}

#[derive(Clone, Debug, Default)]
struct Fake {
    pipes: Rc<RefCell<Vec<Rc<RefCell<Pipe>>>>>,
    /// The checksums of the models.
    planted: Rc<RefCell<Vec<u32>>>,
    /// Knobs of Muses' connections to come.
    defaults: Rc<RefCell<BTreeMap<String, f64>>>,
    /// Knobs of connections to come, by where they go.
    towards: Rc<RefCell<BTreeMap<Towards, Knobs>>>,
    by: Rc<Cell<By>>,
}

/// As the engine tells them.
type Knobs = Vec<(String, f64)>;

/// So many destinations there is room for.
const TOWARDS_MAX: usize = 4;

impl Fake {
    fn open(&self, local: &str, remote: &str) -> (Rc<RefCell<Pipe>>, Event) {
        let slot = self.pipes.borrow().len() as u32;
        let identity = Identity {
            id: FlowId(u64::from(slot) + 1),
            algorithm: "copa",
            cookie: None,
            netns_cookie: own_netns().expect("Linux 5.14 or later"),
            cgroup: None,
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            device: None,
            opened: Time::ZERO,
            adopted: false,
            towards: false,
        };
        let knobs = Copa::KNOBS.iter().map(|k| (k.name.to_owned(), k.default));
        let knobs = knobs.chain(self.defaults.borrow().clone()).collect();
        let pipe = Pipe {
            identity,
            knobs,
            acks: 0,
            loss: 0.0,
            jitter: Duration::ZERO,
            shallow: false,
            open: true,
            closing: false,
            cookie: None,
            watched: false,
            looks: 0,
            switches: Vec::new(),
            share: 1.0,
            segment: 0,
            totals: Totals::default(),
            alarm: None,
        };
        let pipe = Rc::new(RefCell::new(pipe));
        self.pipes.borrow_mut().push(Rc::clone(&pipe));
        (pipe, Event { id: identity.id, slot, at: Time::ZERO, kind: EventKind::Open })
    }
}

impl Fake {
    /// The events of those that are watched and on which something has happened.
    fn woken(&self, at: Time) -> Vec<Event> {
        let event = |slot: usize, pipe: &mut Pipe| Event {
            id: pipe.identity.id,
            slot: slot as u32,
            at,
            kind: EventKind::Active,
        };
        let pipes = self.pipes.borrow();
        let all = pipes.iter().enumerate();
        let told = all.filter_map(|(slot, pipe)| {
            let mut pipe = pipe.borrow_mut();
            std::mem::take(&mut pipe.watched).then(|| event(slot, &mut pipe))
        });
        told.collect()
    }
}

impl Datapath for Fake {
    type Link = FakeLink;

    const ALGORITHMS: &'static [Algorithm] = ALGORITHMS;

    fn links(&self) -> Vec<FakeLink> {
        let all = self.pipes.borrow().len() as u32;
        (0..all).filter_map(|slot| self.link(slot)).collect()
    }

    fn add_trees(&self, trees: &Trees<'_>) -> Result<f64, Error> {
        let mut planted = self.planted.borrow_mut();
        let place = planted.iter().position(|sum| *sum == trees.checksum());
        let place = place.unwrap_or_else(|| {
            planted.push(trees.checksum());
            planted.len() - 1
        });
        Ok(place as f64 + 1.0)
    }

    fn set_default(&self, algorithm: Algorithm, knob: &str, value: f64) -> Result<f64, Error> {
        assert!(algorithm.asks_trees());
        self.defaults.borrow_mut().insert(knob.to_owned(), value);
        Ok(value)
    }

    fn set_towards(&self, towards: &Towards, knobs: &[(String, f64)]) -> Result<(), Error> {
        let mut all = self.towards.borrow_mut();
        if all.len() == TOWARDS_MAX && !all.contains_key(towards) {
            let full = format!("knobs are kept for {TOWARDS_MAX} destinations");
            return Err(Error::Refused(full.into()));
        }
        all.insert(*towards, knobs.to_vec());
        Ok(())
    }

    fn remove_towards(&self, towards: &Towards) -> Result<(), Error> {
        self.towards.borrow_mut().remove(towards);
        Ok(())
    }

    fn towards(&self) -> Vec<Towards> {
        self.towards.borrow().keys().copied().collect()
    }

    fn tell_apart(&self, by: By) -> Result<(), Error> {
        if self.by.replace(by) != by {
            self.towards.borrow_mut().clear();
        }
        Ok(())
    }

    fn link(&self, slot: u32) -> Option<FakeLink> {
        let pipe = Rc::clone(self.pipes.borrow().get(slot as usize)?);
        let (identity, open) = (pipe.borrow().identity, pipe.borrow().open);
        open.then_some(FakeLink { pipe, identity, began: None })
    }
}

impl Link for FakeLink {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn algorithm(&self) -> Algorithm {
        algorithm(self.pipe.borrow().identity.algorithm).unwrap()
    }

    fn cookie(&self) -> Option<u64> {
        self.pipe.borrow().cookie
    }

    fn is_closing(&self) -> bool {
        self.pipe.borrow().closing
    }

    fn acks(&self) -> Option<u64> {
        let mut pipe = self.pipe.borrow_mut();
        pipe.looks += 1;
        pipe.open.then_some(pipe.acks)
    }

    fn watch(&mut self) -> bool {
        self.began = None;
        let mut pipe = self.pipe.borrow_mut();
        pipe.watched = true;
        pipe.open
    }

    fn begin(&mut self, now: Time) -> bool {
        self.began = Some(now);
        self.pipe.borrow().open
    }

    fn report(&mut self, now: Time, factors: Factors) -> Option<Report> {
        let pipe = self.pipe.borrow();
        let interval = now.since(self.began.replace(now)?);
        let packets = 1000.0 * interval.as_secs_f64() * pipe.share;
        // CUBIC fills the buffer.
        let queue = match pipe.identity.algorithm {
            "cubic" => 0.080,
            _ => 1.25 / pipe.knobs["delta"] / 1000.0,
        };
        let rtt = Duration::from_secs_f64(0.020 + queue);
        let mss = Bytes::new(1500);
        pipe.open.then(|| Report {
            now,
            interval,
            algorithm: pipe.identity.algorithm,
            sent: mss.mul_f64(packets),
            acked: mss.mul_f64(packets * (1.0 - pipe.loss())),
            lost: mss.mul_f64(packets * pipe.loss()),
            busy: interval,
            rtt_samples: 10,
            rtt_variance: 0.0,
            rtt_mean: Some(rtt),
            rtt_min: Some(rtt - pipe.jitter),
            rtt_max: Some(rtt + pipe.jitter),
            rtts: None,
            srtt: rtt,
            min_rtt: Duration::from_millis(20),
            delivery_rate: Some(Rate::from_mbps(12.0)),
            delivery_rate_any: Some(Rate::from_mbps(12.0)),
            window: mss * 30,
            inflight: mss * 30,
            mss,
            phase: Phase::Steady,
            knobs: KnobValues::NONE,
            states: (pipe.identity.algorithm == "muses").then(|| {
                let mut counts = Counts::default();
                for _ in 0..(interval.as_millis_f64() / 10.0) as u64 {
                    counts.add([pipe.segment; COMPONENTS]);
                }
                counts
            }),
            responses: Responses::default(),
            factors,
        })
    }

    fn switch(
        &self,
        to: Algorithm,
        knobs: Option<&[(&str, f64)]>,
        how: Switch,
    ) -> Result<(), Error> {
        let mut pipe = self.pipe.borrow_mut();
        pipe.identity.algorithm = to.name();
        pipe.switches.push((to, knobs.is_some(), how));
        Ok(())
    }

    fn switching(&self) -> Option<Switching> {
        let switches = self.pipe.borrow().switches.len() as u32;
        Some(Switching { pending: None, switches, took: Duration::from_micros(2), refused: None })
    }

    fn totals(&self) -> Option<Totals> {
        let pipe = self.pipe.borrow();
        pipe.open.then_some(pipe.totals)
    }

    fn set(&self, knob: &str, value: f64) -> Result<f64, Error> {
        let mut pipe = self.pipe.borrow_mut();
        if !pipe.open {
            return Err(Error::Closed);
        }
        pipe.knobs.insert(knob.to_owned(), value);
        Ok(value)
    }

    fn set_of(&self, algorithm: Algorithm, knob: &str, value: f64) -> Result<f64, Error> {
        self.set(&format!("{}.{knob}", algorithm.name()), value)
    }

    fn alarm(&self) -> Option<Alarm> {
        self.pipe.borrow().alarm
    }

    fn knob(&self, knob: &str) -> Result<f64, Error> {
        Ok(self.pipe.borrow().knobs[knob])
    }
}

const RULES: &str = r#"
[safety]
after = "3s"
rest = "10s"
[[rule]]
name = "web"
port = 443
qoe = "download"
factors = { R = 8 }
steer = "mortise"
[[rule]]
name = "fixed"
port = 8080
knobs = { delta = 0.2 }
"#;

fn config(text: &str) -> Config {
    Config::parse(Path::new("agent.toml"), text).unwrap()
}

/// Lets time pass, with acknowledgements all the time.
fn pass(core: &mut Core<Fake>, fake: &Fake, from: Time, seconds: f64) -> Time {
    pass_by(core, fake, from, seconds, Duration::from_millis(5))
}

/// The same in steps of this length.
fn pass_by(core: &mut Core<Fake>, fake: &Fake, from: Time, seconds: f64, step: Duration) -> Time {
    let end = from + Duration::from_secs_f64(seconds);
    let mut now = from;
    while now < end {
        for pipe in fake.pipes.borrow().iter() {
            pipe.borrow_mut().carry(step, now);
        }
        for event in fake.woken(now) {
            core.on_event(&event, now);
        }
        core.run(now);
        now += step;
    }
    now
}

fn standing(core: &Core<Fake>, id: u64) -> Standing {
    let connection = core.connections().get(&FlowId(id)).unwrap();
    connection.standing(core.config().mode, core.rule(connection.rule))
}

#[test]
fn each_connection_gets_what_its_first_rule_says() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
    assert_eq!(core.adopted(), 1);
    let (fixed, event) = fake.open("10.0.0.1:8080", "192.0.2.1:5001");
    core.on_event(&event, Time::ZERO);
    let (other, event) = fake.open("10.0.0.1:22", "192.0.2.1:5002");
    core.on_event(&event, Time::ZERO);
    pass(&mut core, &fake, Time::ZERO, 5.0);

    assert_eq!(
        [1, 2, 3].map(|id| standing(&core, id)),
        [Standing::Steered, Standing::Set, Standing::Unmatched]
    );
    let delta = web.borrow().knobs["delta"];
    assert!((0.01..0.5).contains(&delta) && delta != 0.07, "Mortise has decided: {delta}");
    for &(knob, value) in Mortise::algorithm().settings() {
        if !["delta", "pacing_gain"].contains(&knob) {
            assert_eq!(web.borrow().knobs[knob], value, "{knob}");
        }
    }
    assert_eq!(fixed.borrow().knobs["delta"], 0.2);
    assert_eq!(other.borrow().knobs["delta"], 0.5);
    let why = core.why("5000", Time::ZERO).unwrap();
    assert!(
        why.decisions.iter().any(|d| matches!(d.cause, crate::Cause::Gradient { .. })),
        "{why}"
    );
    assert!(core.why("192.0.2.1", Time::ZERO).unwrap_err().contains("3 connections"));
    let tally = &core.tallies()[&("web".to_owned(), Arm::Treated)];
    assert!(tally.windows >= 4 && tally.scored == tally.windows && tally.decisions > 0);

    let close =
        Event { id: FlowId(1), slot: 0, at: Time::ZERO, kind: EventKind::Close(Totals::default()) };
    core.on_event(&close, Time::ZERO);
    assert_eq!(core.len(), 2);
}

#[test]
fn a_connection_with_another_algorithm_than_its_rule_is_measured_only() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    web.borrow_mut().identity.algorithm = "cubic";
    let before = web.borrow().knobs.clone();
    let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
    pass(&mut core, &fake, Time::ZERO, 5.0);
    assert_eq!(standing(&core, 1), Standing::Measured);
    assert_eq!(web.borrow().knobs, before);
    let tally = &core.tallies()[&("web".to_owned(), Arm::Treated)];
    assert!(tally.scored >= 3 && tally.decisions == 0, "{tally:?}");
}

const TURNS: &str = r#"
    [[rule]]
    name = "web"
    port = 443
    turns = ["copa", "cubic"]
    every = "2s"
"#;

#[test]
fn algorithms_take_turns_from_the_one_that_runs() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    // An agent before this one was in the middle.
    web.borrow_mut().identity.algorithm = "cubic";
    let mut core = Core::new(fake.clone(), config(TURNS), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 9.0);
    assert_eq!(standing(&core, 1), Standing::Turning);
    let seen = web.borrow().switches.clone();
    let (copa, cubic) = (named("copa"), named("cubic"));
    let how = Switch::Full;
    // With its own knobs the first time, then as they were left.
    let expected = [(copa, true, how), (cubic, true, how), (copa, false, how), (cubic, false, how)];
    assert_eq!(seen, expected);
    let why = core.why("1", now).unwrap();
    let text = why.to_string();
    assert_eq!((why.flow.algorithm.as_str(), why.flow.switches), ("cubic", 4));
    assert!(text.contains("copa -> cubic: the algorithms of the rule take turns"), "{text}");
    assert!(text.contains("algorithm cubic; another one took over 4 times, the last in 2.0 µs"));
    let json = serde_json::to_value(&why.decisions).unwrap();
    assert_eq!((&json[3]["from"], &json[3]["to"]), (&"copa".into(), &"cubic".into()), "{json}");
}

/// Both are as fast, and Copa has the shorter queue.
#[test]
fn the_algorithm_that_does_best_is_selected() {
    let (copa, cubic) = (named("copa"), named("cubic"));
    for (first, seen) in [("copa", vec![cubic, copa]), ("cubic", vec![copa])] {
        let fake = Fake::default();
        let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
        web.borrow_mut().identity.algorithm = first;
        let rule = format!("{TURNS}\n    select = \"power\"");
        let mut core = Core::new(fake.clone(), config(&rule), Time::ZERO);
        let now = pass(&mut core, &fake, Time::ZERO, 11.0);
        assert_eq!(standing(&core, 1), Standing::Selecting);
        let switches: Vec<_> = web.borrow().switches.iter().map(|(to, ..)| *to).collect();
        assert_eq!(switches, seen, "from {first}");
        let text = core.why("1", now).unwrap().to_string();
        assert!(text.contains(": chosen or tried again by power"), "{text}");
    }
}

/// What nobody carries out is not tried, so that nothing is learnt of it, and it is asked for once.
#[test]
fn a_selection_that_is_advised_goes_no_further_than_the_first_trial() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let rule = format!("mode = \"advise\"{TURNS}\n    select = \"power\"");
    let mut core = Core::new(fake.clone(), config(&rule), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 40.0);
    assert_eq!((standing(&core, 1), web.borrow().switches.len()), (Standing::Advised, 0));
    let why = core.why("1", now).unwrap();
    assert_eq!(why.decisions.len(), 1, "{why}");
    assert!(
        why.to_string().contains("copa -> cubic (advice only): chosen or tried again"),
        "{why}"
    );
}

#[test]
fn turns_are_advised_only_where_nothing_is_to_change() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let mut core =
        Core::new(fake.clone(), config(&format!("mode = \"advise\"{TURNS}")), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 5.0);
    assert_eq!((standing(&core, 1), web.borrow().switches.len()), (Standing::Advised, 0));
    let text = core.why("1", now).unwrap().to_string();
    assert!(text.contains("copa -> cubic (advice only)"), "{text}");
}

#[test]
fn advice_and_holdback_change_nothing() {
    for (begin, expected) in
        [("mode = \"advise\"", Standing::Advised), ("holdback = \"100%\"", Standing::Holdback)]
    {
        let fake = Fake::default();
        let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
        let before = web.borrow().knobs.clone();
        let mut core = Core::new(fake.clone(), config(&format!("{begin}\n{RULES}")), Time::ZERO);
        pass(&mut core, &fake, Time::ZERO, 5.0);
        assert_eq!(standing(&core, 1), expected);
        assert_eq!(web.borrow().knobs, before);
        let (_, tally) = core.tallies().iter().next().unwrap();
        assert_eq!(tally.decisions > 0, expected == Standing::Advised);
        assert!(tally.scored >= 3, "measured all the same: {tally:?}");
    }
}

#[test]
fn knobs_that_somebody_else_turns_are_left_to_them() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 3.0);
    web.borrow_mut().knobs.insert("delta".to_owned(), 0.31);
    pass(&mut core, &fake, now, 4.0);
    assert_eq!(standing(&core, 1), Standing::Yielded);
    assert_eq!(web.borrow().knobs["delta"], 0.31);
    assert!(told(core.take_notes()).iter().any(|note| note.contains("somebody else")));
}

#[test]
fn the_next_agent_goes_on_where_the_last_one_was() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 5.0);
    let delta = web.borrow().knobs["delta"];
    drop(core);
    let core = Core::new(fake, config(RULES), now);
    assert_eq!(web.borrow().knobs["delta"], delta);
    assert_eq!(standing(&core, 1), Standing::Steered);
    assert_eq!(core.connections().get(&FlowId(1)).unwrap().decisions.count, 0);
}

#[test]
fn a_reload_disturbs_only_whose_rule_changed() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let (fixed, _) = fake.open("10.0.0.1:8080", "192.0.2.1:5001");
    let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 5.0);
    let (delta, decisions) =
        (web.borrow().knobs["delta"], core.connections().get(&FlowId(1)).unwrap().decisions.count);
    core.reload(config(&RULES.replace("delta = 0.2", "delta = 0.3")), now);
    assert_eq!(fixed.borrow().knobs["delta"], 0.3);
    assert_eq!(web.borrow().knobs["delta"], delta);
    assert_eq!(core.connections().get(&FlowId(1)).unwrap().decisions.count, decisions);
    core.reload(config(&RULES.replace("qoe = \"download\"", "qoe = \"T - 100 * D\"")), now);
    assert_eq!(standing(&core, 1), Standing::Steered);
    assert_eq!(web.borrow().knobs["delta"], delta, "steering begins where the knobs are");
    core.reload(config(""), now);
    assert_eq!([1, 2].map(|id| standing(&core, id)), [Standing::Unmatched; 2]);
    assert_eq!(core.config().mode, Mode::Apply);
}

#[test]
fn hints_of_the_application_come_before_the_rule() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
    web.borrow_mut().cookie = Some(77);
    let (local, remote) =
        ("[::ffff:10.0.0.1]:443".parse().unwrap(), "192.0.2.1:5000".parse().unwrap());
    let netns = web.borrow().identity.netns_cookie;
    let id = core.by_addresses(local, remote, netns).unwrap();
    assert_eq!(core.by_addresses(local, remote, netns + 1), None);
    assert_eq!(core.identity(id).unwrap().cookie, None);
    let factors = Factors::new().with_request(Bytes::new(125_000));
    assert!(core.hint(id, None, factors, Time::ZERO));
    pass(&mut core, &fake, Time::ZERO, 1.0);
    assert_eq!(core.identity(id).unwrap().cookie, Some(77));
    let why = core.why("1", Time::ZERO).unwrap();
    assert!(why.flow.hinted);
    assert_eq!(why.factors, [("R".to_owned(), Some(1.0))]);
    assert!(!core.hint(FlowId(9), None, Factors::new(), Time::ZERO));
}

/// Mortise Eq. 4 through the door of libtrimtab: the formula is text there, and the kernel's
/// reports have only means and ends. The tail of ten round trips is the largest of them.
#[test]
fn a_hint_may_price_the_tail() {
    let lambda = |formula: &str| {
        let fake = Fake::default();
        let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
        web.borrow_mut().jitter = Duration::from_millis(5);
        let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
        let now = pass(&mut core, &fake, Time::ZERO, 0.1);
        let model = Model::parse(formula, &[]).unwrap();
        assert!(core.hint(FlowId(1), Some(model), Factors::new(), now));
        let now = pass(&mut core, &fake, now, 20.0);
        let connection = core.connections().get(&FlowId(1)).unwrap();
        let tail = connection.last.as_ref().unwrap().point.delay + Duration::from_millis(5);
        let score = connection.score.unwrap();
        let decisions = core.why("1", now).unwrap().decisions;
        let price = |decision: &crate::Decision| match decision.cause {
            crate::Cause::Gradient { lambda, .. } => Some(lambda),
            _ => None,
        };
        (decisions.iter().filter_map(price).next_back().unwrap(), score, tail.as_secs_f64())
    };
    let ((mean, ..), (tail, score, longest)) = (lambda("T - 20*D"), lambda("T - 20*p95(D)"));
    assert!(tail > 1.5 * mean && mean > 0.0, "λ: {mean} {tail}");
    assert!((score - (12.0 - 20.0 * longest)).abs() < 0.1, "{score} of {longest} s");
}

/// A server has closed it, and the client has not: nothing is sent on it any more, so nothing is decided for it.
#[test]
fn what_is_closing_is_neither_open_nor_steered() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 2.0);
    assert_eq!((core.len(), standing(&core, 1)), (1, Standing::Steered));
    web.borrow_mut().closing = true;
    let decisions = |core: &Core<Fake>| core.connections().get(&FlowId(1)).unwrap().decisions.count;
    let before = decisions(&core);
    let now = pass(&mut core, &fake, now, 2.0);
    core.reload(config(&RULES.replace("R = 8", "R = 4")), now);
    pass(&mut core, &fake, now, 2.0);
    assert_eq!((core.len(), standing(&core, 1), decisions(&core)), (0, Standing::Closing, before));
}

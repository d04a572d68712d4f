//! Connections that the engine of a fleet configures.

use std::net::IpAddr;

use trimtab_fleet_client::edge::{Configuration, Control, InForce, Key};

use super::*;

const RULE: &str = r#"
[fleet]
engine = "http://127.0.0.1:1"
token_file = "nowhere"
[[rule]]
name = "tv"
port = 443
steer = "fleet"
service = "tv"
algorithm = "copa"
"#;

/// Days, so that no test sees one end.
const DAY: Duration = Duration::from_secs(86_400);

fn force(version: u64, algorithm: &str, knobs: &[(&str, f64)]) -> InForce {
    let knobs = knobs.iter().map(|(knob, value)| ((*knob).to_owned(), *value)).collect();
    let algorithm = algorithm.to_owned();
    let configuration = Configuration { version, algorithm, knobs, control: None };
    InForce { configuration, interval: DAY }
}

fn key() -> Key {
    "tv/192.0.2.0/24".parse().unwrap()
}

/// Everything that was recorded, with the interval that is not over either.
fn reports(edge: &Edge) -> Vec<(Key, u64, u64, f64)> {
    let mean = |report: &trimtab_fleet_client::edge::Report, name: &str| {
        report
            .summary
            .get(name)
            .and_then(trimtab_fleet_client::edge::Sketch::mean)
            .unwrap_or(f64::NAN)
    };
    let all = edge.close(Time::from_nanos(u64::MAX));
    all.iter()
        .map(|report| {
            let connections = report.summary.connections();
            (report.key.clone(), report.version, connections, mean(report, "throughput"))
        })
        .collect()
}

#[test]
fn knobs_follow_the_engine_and_what_is_seen_counts_for_what_was_in_force() {
    let (fake, edge) = (Fake::default(), Arc::new(Edge::alone()));
    let (pipe, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let (other, _) = fake.open("10.0.0.1:443", "198.51.100.1:5000");
    let shared = Some(Arc::clone(&edge));
    let mut core = Core::with_edge(fake.clone(), config(RULE), shared, Time::ZERO);
    assert_eq!(standing(&core, 1), Standing::Customized);
    let now = pass(&mut core, &fake, Time::ZERO, 1.0);
    assert_eq!(pipe.borrow().knobs["delta"], 0.5, "nobody has said anything yet");

    edge.learn(key(), force(3, "copa", &[("delta", 0.1), ("velocity_max", 16.0)]));
    let now = pass(&mut core, &fake, now, 3.0);
    let knobs = |name: &str| pipe.borrow().knobs[name];
    assert_eq!((knobs("delta"), knobs("velocity_max")), (0.1, 16.0));
    assert_eq!(other.borrow().knobs["delta"], 0.5, "of another prefix");
    let why = core.why("1", now).unwrap().to_string();
    assert!(
        why.contains("delta = 0.1000: configuration 3 of tv/192.0.2.0/24, by the engine"),
        "{why}"
    );

    // A new version begins a new part, and what it no longer names has its default.
    edge.learn(key(), force(4, "copa", &[("delta", 0.2)]));
    let now = pass(&mut core, &fake, now, 2.0);
    let default = Copa::KNOBS.iter().find(|knob| knob.name == "velocity_max").unwrap().default;
    assert_eq!((knobs("delta"), knobs("velocity_max")), (0.2, default));
    core.on_event(&Event { id: FlowId(1), slot: 0, at: now, kind: close(&pipe) }, now);
    let reports = reports(&edge);
    let [former, latest] = &reports[..] else { panic!("{reports:?}") };
    for ((of, version, connections, mbps), expected) in [(former, 3), (latest, 4)] {
        assert_eq!((of, *version, *connections), (&key(), expected, 1), "each version counts");
        assert!((mbps - 12.0).abs() < 0.1, "{mbps}");
    }
}

/// Half of the clusters of clients run the control, each its own knobs, and count for its version.
#[test]
fn clients_of_the_control_get_its_knobs_and_are_reported_with_it() {
    let (fake, edge) = (Fake::default(), Arc::new(Edge::alone()));
    let pipes: Vec<_> =
        (0..16).map(|n| fake.open("10.0.0.1:443", &format!("192.0.2.{}:5000", 16 * n)).0).collect();
    let mut tried = force(8, "copa", &[("delta", 0.1)]);
    let (algorithm, knobs) = ("copa".to_owned(), vec![("delta".to_owned(), 0.3)]);
    tried.configuration.control =
        Some(Control { version: 7, algorithm, knobs, share: 0.5, seed: 5 });
    edge.learn(key(), tried.clone());
    let mut core = Core::with_edge(fake.clone(), config(RULE), Some(Arc::clone(&edge)), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 3.0);
    let mut arms = [0, 0];
    for (n, pipe) in (0..16_u8).zip(&pipes) {
        let client = Some([192, 0, 2, 16 * n].into());
        let is_control = tried.control_for(&key(), client, edge.interval(&tried)).is_some();
        assert_eq!(pipe.borrow().knobs["delta"], if is_control { 0.3 } else { 0.1 }, "{n}");
        arms[usize::from(is_control)] += 1;
        let (id, slot) = (FlowId(u64::from(n) + 1), u32::from(n));
        core.on_event(&Event { id, slot, at: now, kind: close(pipe) }, now);
    }
    let counts: Vec<(u64, u64)> = reports(&edge).iter().map(|of| (of.1, of.2)).collect();
    assert_eq!(counts, [(7, arms[1]), (8, arms[0])]);
    assert!(arms[0] > 0 && arms[1] > 0, "{arms:?}");
}

/// The end, with the sums of a connection.
fn close(pipe: &Rc<RefCell<Pipe>>) -> EventKind {
    EventKind::Close(pipe.borrow().totals)
}

/// Three looks into the life of a connection and what the kernel says at its end are all of it.
#[test]
fn short_connections_count_from_their_first_byte_to_their_last() {
    let (fake, edge) = (Fake::default(), Arc::new(Edge::alone()));
    edge.learn(key(), force(1, "copa", &[("delta", 0.1)]));
    let mut core = Core::with_edge(fake.clone(), config(RULE), Some(Arc::clone(&edge)), Time::ZERO);
    for (number, lasts) in [(1, 0.01), (2, 0.2), (3, 0.4)] {
        let (pipe, open) = fake.open("10.0.0.1:443", &format!("192.0.2.{number}:5000"));
        let begun = Time::from_secs(number);
        pipe.borrow_mut().identity.opened = begun;
        core.on_event(&open, begun);
        assert_eq!(pipe.borrow().knobs["delta"], 0.1, "its knobs come before its data");
        let now = pass(&mut core, &fake, begun, lasts);
        pipe.borrow_mut().open = false;
        // A look may come before the kernel's close event.
        core.run(now + Duration::from_millis(60));
        let end = Event { id: open.id, slot: open.slot, at: now, kind: close(&pipe) };
        core.on_event(&end, now);
        assert_eq!(core.len(), 0);
    }
    let all = edge.close(Time::from_nanos(u64::MAX));
    let [report] = &all[..] else { panic!("{all:?}") };
    assert_eq!(report.summary.connections(), 3);
    let throughput = report.summary.get("throughput").unwrap();
    // Of the first there was less than says anything of a rate, 15 kB in two steps is just enough.
    assert!((throughput.mean().unwrap() - 12.0).abs() < 0.01, "{throughput:?}");
    assert_eq!((report.summary.get("rtt").unwrap().mean().unwrap() * 1e3).round(), 22.0);
    let took = report.summary.get("request_time").unwrap();
    assert_eq!(took.statistic(trimtab_qoe::StatisticKind::Count), Some(3.0));
    assert!((took.mean().unwrap() - (0.01 + 0.2 + 0.4) / 3.0).abs() < 0.01, "{took:?}");
}

/// The kernel's close event may be lost.
#[test]
fn a_connection_whose_end_nobody_tells_of_counts_until_the_last_look() {
    let (fake, edge) = (Fake::default(), Arc::new(Edge::alone()));
    edge.learn(key(), force(1, "copa", &[("delta", 0.1)]));
    let (pipe, open) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let mut core = Core::with_edge(fake.clone(), config(RULE), Some(Arc::clone(&edge)), Time::ZERO);
    core.on_event(&open, Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 1.0);
    pipe.borrow_mut().open = false;
    core.run(now + Duration::from_millis(60));
    assert_eq!(core.len(), 1, "the word is awaited");
    core.run(now + Duration::from_millis(200));
    assert_eq!(core.len(), 0);
    let all = edge.close(Time::from_nanos(u64::MAX));
    let mean = all[0].summary.get("throughput").unwrap().mean().unwrap();
    assert!((mean - 12.0).abs() < 0.01, "{mean}");
}

#[test]
fn what_did_not_run_what_the_engine_chose_tells_nothing() {
    for (first, turned) in
        [("mode = \"advise\"", false), ("", true), ("holdback = \"100%\"", false)]
    {
        let (fake, edge) = (Fake::default(), Arc::new(Edge::alone()));
        edge.learn(key(), force(1, "copa", &[("delta", 0.1)]));
        let (pipe, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
        let config = config(&format!("{first}\n{RULE}"));
        let shared = Some(Arc::clone(&edge));
        let mut core = Core::with_edge(fake.clone(), config, shared, Time::ZERO);
        if turned {
            // Somebody else turns the knob, which is seen with the next version.
            pipe.borrow_mut().knobs.insert("delta".to_owned(), 0.7);
            edge.learn(key(), force(2, "copa", &[("delta", 0.3)]));
        }
        pass(&mut core, &fake, Time::ZERO, 2.0);
        assert_eq!(pipe.borrow().knobs["delta"], if turned { 0.7 } else { 0.5 }, "{first}");
        drop(core);
        assert_eq!(reports(&edge), [], "{first}");
    }
}

/// They had no guard. What it runs while it rests tells the engine nothing.
#[test]
fn knobs_of_the_engine_that_do_harm_are_taken_back_for_a_while() {
    let (fake, edge) = (Fake::default(), Arc::new(Edge::alone()));
    edge.learn(key(), force(1, "copa", &[("delta", 0.1)]));
    let (pipe, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    pipe.borrow_mut().shallow = true;
    let shared = Some(Arc::clone(&edge));
    let mut core = Core::with_edge(fake.clone(), config(RULE), shared, Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 8.0);
    let delta = || pipe.borrow().knobs["delta"];
    assert_eq!((standing(&core, 1), delta()), (Standing::Resting, 0.5));
    edge.learn(key(), force(2, "copa", &[("delta", 0.2)]));
    let now = pass(&mut core, &fake, now, 10.0);
    assert_eq!((standing(&core, 1), delta()), (Standing::Resting, 0.5));
    pipe.borrow_mut().shallow = false;
    let now = pass(&mut core, &fake, now, 55.0);
    assert_eq!((standing(&core, 1), delta()), (Standing::Customized, 0.2));
    core.on_event(&Event { id: FlowId(1), slot: 0, at: now, kind: close(&pipe) }, now);
    let all = edge.close(Time::from_nanos(u64::MAX));
    let [former, report] = &all[..] else { panic!("{all:?}") };
    let loss = |report: &trimtab_fleet_client::edge::Report| {
        report.summary.get("loss").unwrap().mean().unwrap()
    };
    assert_eq!((former.version, report.version), (1, 2));
    assert!(loss(former) > 0.05 && loss(report) == 0.0, "{all:?}");
}

#[test]
fn what_no_connection_can_run_is_told_and_changes_nothing() {
    let (fake, edge) = (Fake::default(), Arc::new(Edge::alone()));
    edge.learn(key(), force(1, "westwood", &[]));
    fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let mut core = Core::with_edge(fake.clone(), config(RULE), Some(edge.clone()), Time::ZERO);
    edge.learn(key(), force(2, "westwood", &[]));
    pass(&mut core, &fake, Time::ZERO, 1.0);
    let notes = told(core.take_notes());
    assert_eq!(
        notes,
        [
            "tv/192.0.2.0/24: the engine chose westwood, which connections cannot run here: leave it \
             out of the service, or let an agent that has it serve these destinations"
        ]
    );
    assert_eq!(core.why("1", Time::ZERO).unwrap().flow.decisions, 0);
    drop(core);
    assert_eq!(reports(&edge), [], "it ran something else");
}

/// The rule is about what is installed; the engine chooses among several algorithms.
#[test]
fn connections_run_the_algorithm_that_the_engine_chose() {
    let (fake, edge) = (Fake::default(), Arc::new(Edge::alone()));
    let (pipe, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    // A connection of Vivace has these knobs as well.
    for knob in named("vivace").knobs() {
        pipe.borrow_mut().knobs.insert(knob.name.to_owned(), knob.default);
    }
    edge.learn(key(), force(1, "copa", &[]));
    let shared = Some(Arc::clone(&edge));
    let mut core = Core::with_edge(fake.clone(), config(RULE), shared, Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 2.0);
    assert_eq!(pipe.borrow().switches, [], "it runs that from its beginning");

    edge.learn(key(), force(2, "vivace", &[("gamma", 10.0)]));
    let now = pass(&mut core, &fake, now, 2.0);
    assert_eq!(pipe.borrow().switches, [(named("vivace"), true, Switch::Full)]);
    assert_eq!(standing(&core, 1), Standing::Customized);
    let why = core.why("1", now).unwrap().to_string();
    assert!(why.contains("configuration 2 of tv/192.0.2.0/24, by the engine"), "{why}");
    // Another value of a knob is no switch.
    edge.learn(key(), force(3, "vivace", &[("gamma", 20.0)]));
    let now = pass(&mut core, &fake, now, 2.0);
    assert_eq!((pipe.borrow().knobs["gamma"], pipe.borrow().switches.len()), (20.0, 1));
    edge.learn(key(), force(4, "cubic", &[]));
    let now = pass(&mut core, &fake, now, 2.0);
    assert_eq!(pipe.borrow().switches.last(), Some(&(named("cubic"), true, Switch::Full)));
    assert_eq!(standing(&core, 1), Standing::Customized);

    // The next agent finds it so, and knows what it ran before.
    drop(core);
    pipe.borrow_mut().identity.adopted = true;
    let shared = Some(Arc::clone(&edge));
    let mut core = Core::with_edge(fake.clone(), config(RULE), shared, now);
    let now = pass(&mut core, &fake, now, 2.0);
    assert_eq!((standing(&core, 1), pipe.borrow().switches.len()), (Standing::Customized, 2));
    core.on_event(&Event { id: FlowId(1), slot: 0, at: now, kind: close(&pipe) }, now);
    let versions: Vec<(u64, f64)> = reports(&edge).iter().map(|r| (r.1, r.3.round())).collect();
    assert_eq!(versions.iter().map(|v| v.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(versions.iter().all(|(_, mbps)| *mbps == 12.0), "{versions:?}");
    // Without the rule it has what it had.
    let (other, _) = fake.open("10.0.0.1:443", "192.0.2.2:5000");
    edge.learn(key(), force(4, "cubic", &[]));
    let mut core = Core::with_edge(fake.clone(), config(RULE), Some(edge), now);
    let now = pass(&mut core, &fake, now, 1.0);
    assert_eq!(other.borrow().identity.algorithm, "cubic");
    core.reload(config("[[rule]]\nname = \"web\"\nport = 80\nqoe = \"download\"\n"), now);
    pass(&mut core, &fake, now, 1.0);
    assert_eq!(other.borrow().identity.algorithm, "copa");
}

#[test]
fn aggregates_are_told_apart_by_prefix() {
    let config = config(&RULE.replace("service = \"tv\"", "service = \"tv\"\nprefix = [16, 32]"));
    let Some(Steering::Fleet(customized)) = &config.rules[0].steering else { panic!() };
    let key = |address: &str| customized.key(address.parse().unwrap()).to_string();
    assert_eq!(key("192.0.2.1"), "tv/192.0.0.0/16");
    assert_eq!(key("::ffff:192.0.2.1"), "tv/192.0.0.0/16");
    assert_eq!(key("2001:db8:1:2::3"), "tv/2001:db8::/32");
}

/// Prefixes that are one aggregate are configured, reported and drawn as one.
#[test]
fn prefixes_that_share_a_bottleneck_are_one_aggregate() {
    let folder = tempfile::tempdir().unwrap();
    let groups = folder.path().join("together.txt");
    std::fs::write(&groups, "192.0.2.0/24 198.51.100.0/24\n").unwrap();
    let (fake, edge) = (Fake::default(), Arc::new(Edge::alone()));
    let mut tried = force(8, "copa", &[("delta", 0.1)]);
    let (algorithm, knobs) = ("copa".to_owned(), vec![("delta".to_owned(), 0.3)]);
    tried.configuration.control =
        Some(Control { version: 7, algorithm, knobs, share: 0.5, seed: 5 });
    edge.learn(key(), tried.clone());
    let address = |n: u8| match n % 2 {
        0 => [192, 0, 2, 8 * n],
        _ => [198, 51, 100, 8 * n],
    };
    let rule = format!("{RULE}together = {groups:?}\n");
    let mut core =
        Core::with_edge(fake.clone(), config(&rule), Some(Arc::clone(&edge)), Time::ZERO);
    let mut open = |n: u8| {
        let client = format!("{}:5000", IpAddr::from(address(n)));
        let (pipe, event) = fake.open("10.0.0.1:443", &client);
        core.on_event(&event, Time::ZERO);
        pipe
    };
    let pipes: Vec<_> = (0..32).map(&mut open).collect();
    let now = pass(&mut core, &fake, Time::ZERO, 3.0);
    // By prefix, who tries and who is the control.
    let mut arms = [[0; 2]; 2];
    for (n, pipe) in (0..32_u8).zip(&pipes) {
        let delta = pipe.borrow().knobs["delta"];
        let client = Some(address(n).into());
        let is_control = tried.control_for(&key(), client, edge.interval(&tried)).is_some();
        assert_eq!(delta, if is_control { 0.3 } else { 0.1 }, "{n}");
        arms[usize::from(n % 2)][usize::from(is_control)] += 1;
        let (id, slot) = (FlowId(u64::from(n) + 1), u32::from(n));
        core.on_event(&Event { id, slot, at: now, kind: close(pipe) }, now);
    }
    assert!(arms.iter().flatten().all(|count| *count > 0), "both have both arms: {arms:?}");
    // Connections to come begin as the arm of their cluster, in whichever prefix that is.
    let few = Fake::default();
    let mut core = Core::with_edge(few.clone(), config(&rule), Some(Arc::clone(&edge)), Time::ZERO);
    for n in [0, 1, 2, 3] {
        let (_, event) =
            few.open("10.0.0.1:443", &format!("{}:5000", IpAddr::from(address(7 * n))));
        core.on_event(&event, Time::ZERO);
    }
    core.run(Time::ZERO);
    let places = ahead(&few);
    assert_eq!(places.len(), 4, "{places:?}");
    for (place, delta) in places {
        let first: IpAddr = place.split('/').next().unwrap().parse().unwrap();
        let is_control = tried.control_for(&key(), Some(first), edge.interval(&tried)).is_some();
        assert_eq!(delta, if is_control { 0.3 } else { 0.1 }, "{place}");
    }
    let told: Vec<_> = reports(&edge).iter().map(|of| (of.0.clone(), of.1, of.2)).collect();
    let sum = |arm: usize| arms[0][arm] + arms[1][arm];
    assert_eq!(told, [(key(), 7, sum(1)), (key(), 8, sum(0))]);
}

/// What the kernel knows of connections to come: where from, and with which delta.
fn ahead(fake: &Fake) -> Vec<(String, f64)> {
    let all = fake.towards.borrow();
    all.iter().map(|(towards, knobs)| (towards.to_string(), knobs[0].1)).collect()
}

fn place(prefix: &str, delta: f64) -> (String, f64) {
    (prefix.to_owned(), delta)
}

/// Who has been at a prefix once begins with what is learnt for it the next time, whatever becomes
/// of the engine and of the agent.
#[test]
fn the_kernel_is_told_ahead_and_the_next_agent_takes_it_over() {
    let (fake, edge) = (Fake::default(), Arc::new(Edge::alone()));
    let start = |rules: &str| {
        Core::with_edge(fake.clone(), config(rules), Some(Arc::clone(&edge)), Time::ZERO)
    };
    let mut core = start(RULE);
    assert_eq!(fake.by.get(), By { port: true, netns: true, cgroup: false });
    let (_, open) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    core.on_event(&open, Time::ZERO);
    // Of a rule that nobody asked the engine for, and of none.
    for remote in ["192.0.2.9:5001", "198.51.100.1:5000"] {
        let (_, open) = fake.open("10.0.0.1:80", remote);
        core.on_event(&open, Time::ZERO);
    }
    core.run(Time::ZERO);
    assert_eq!(ahead(&fake), [], "nobody has said anything yet");
    edge.learn(key(), force(3, "copa", &[("delta", 0.1)]));
    core.run(Time::ZERO);
    assert_eq!(ahead(&fake), [place("192.0.2.0/24", 0.1)]);
    assert_eq!(fake.towards.borrow().keys().next().map(Towards::port), Some(443));
    edge.learn(key(), force(4, "copa", &[("delta", 0.2)]));
    core.run(Time::ZERO);
    assert_eq!((ahead(&fake), core.ahead().len()), (vec![place("192.0.2.0/24", 0.2)], 1));

    // The next agent goes on; what somebody else wrote of what is no rule's goes.
    drop(core);
    let strange = Towards::new(named("vivace"), "192.0.2.1".parse().unwrap(), 24);
    fake.set_towards(&strange, &[("delta".to_owned(), 1.0)]).unwrap();
    let mut core = start(RULE);
    assert_eq!(ahead(&fake), [place("192.0.2.0/24", 0.2)]);
    edge.learn(key(), force(5, "copa", &[("delta", 0.3)]));
    core.run(Time::ZERO);
    assert_eq!(ahead(&fake), [place("192.0.2.0/24", 0.3)]);
    // One that begins so, and of whose knobs the engine says less, has the defaults for the rest.
    let (planted, open) = fake.open("10.0.0.1:443", "192.0.2.7:5000");
    planted.borrow_mut().identity.towards = true;
    planted.borrow_mut().knobs.insert("velocity_max".to_owned(), 2.0);
    core.on_event(&open, Time::ZERO);
    let default = Copa::KNOBS.iter().find(|knob| knob.name == "velocity_max").unwrap().default;
    assert_eq!(planted.borrow().knobs["velocity_max"], default);

    // What is known outlasts those that use it; other rules, or none to be carried out, end it.
    for rules in [
        RULE.replace("service = \"tv\"", "service = \"vod\""),
        format!("mode = \"advise\"\n{RULE}"),
    ] {
        core.reload(config(RULE), Time::ZERO);
        core.run(Time::ZERO);
        assert_eq!(ahead(&fake), [place("192.0.2.0/24", 0.3)], "{rules}");
        core.reload(config(&rules), Time::ZERO);
        core.run(Time::ZERO);
        assert_eq!(ahead(&fake), [], "{rules}");
    }
    core.reload(config(RULE), Time::ZERO);
    core.run(Time::ZERO);
    // The engine now chooses for another algorithm.
    edge.learn(key(), force(6, "vivace", &[("gamma", 10.0)]));
    core.run(Time::ZERO);
    assert_eq!(ahead(&fake), []);
}

/// All that share an entry are under one rule, and on one side of the comparison.
#[test]
fn what_is_told_ahead_is_as_fine_as_rules_and_comparison() {
    let (fake, edge) = (Fake::default(), Arc::new(Edge::alone()));
    let other = "[[rule]]\nname = \"own\"\nto = \"192.0.2.16/28\"\nport = 443\n";
    let rules = RULE.replace("[[rule]]", &format!("{other}[[rule]]")) + "prefix = [16, 40]\n";
    let wide: Key = "tv/192.0.0.0/16".parse().unwrap();
    edge.learn(wide, force(1, "copa", &[("delta", 0.1)]));
    let shared = Some(Arc::clone(&edge));
    let mut core = Core::with_edge(fake.clone(), config(&rules), shared, Time::ZERO);
    for remote in ["192.0.2.1:5000", "192.0.2.17:5000", "192.0.7.1:5000"] {
        let (_, open) = fake.open("10.0.0.1:443", remote);
        core.on_event(&open, Time::ZERO);
    }
    let fine = [place("192.0.2.0/28", 0.1), place("192.0.7.0/28", 0.1)];
    assert_eq!(ahead(&fake), fine);
    let compared = RULE.to_owned() + "prefix = [16, 40]\n";
    core.reload(config(&format!("holdback = \"1%\"\n{compared}")), Time::ZERO);
    core.run(Time::ZERO);
    assert_eq!(ahead(&fake), [place("192.0.2.0/24", 0.1), place("192.0.7.0/24", 0.1)]);
    core.reload(config(&compared), Time::ZERO);
    core.run(Time::ZERO);
    assert_eq!(ahead(&fake), [place("192.0.0.0/16", 0.1)]);
}

#[test]
fn no_room_to_tell_ahead_is_said_and_what_is_idle_makes_room() {
    let (fake, edge) = (Fake::default(), Arc::new(Edge::alone()));
    let shared = Some(Arc::clone(&edge));
    let mut core = Core::with_edge(fake.clone(), config(RULE), shared, Time::ZERO);
    let come = |core: &mut Core<Fake>, number: usize, now| {
        let key = format!("tv/10.9.{number}.0/24").parse().unwrap();
        edge.learn(key, force(1, "copa", &[("delta", 0.1)]));
        let (pipe, open) = fake.open("10.0.0.1:443", &format!("10.9.{number}.1:5000"));
        core.on_event(&open, now);
        pipe.borrow_mut().open = false;
        core.on_event(&Event { kind: close(&pipe), ..open }, now);
    };
    for number in 0..TOWARDS_MAX {
        come(&mut core, number, Time::from_secs(number as u64));
        assert_eq!(core.ahead().trouble(), None);
    }
    for number in [50, 51] {
        come(&mut core, number, Time::from_secs(60));
        let trouble = core.ahead().trouble().expect("it is said");
        assert!(trouble.contains("kept for 4 destinations"), "{trouble}");
    }
    assert_eq!(core.ahead().len(), TOWARDS_MAX);
    // Six intervals of a day later.
    core.run(Time::ZERO + DAY * 6 + Duration::from_millis(500));
    assert_eq!(core.ahead().len(), TOWARDS_MAX - 1);
    come(&mut core, 52, Time::ZERO + DAY * 6 + Duration::from_secs(1));
    assert_eq!((core.ahead().len(), core.ahead().trouble()), (TOWARDS_MAX, None));
}

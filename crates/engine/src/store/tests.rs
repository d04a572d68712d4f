//! What a store promises. Each test runs on every kind of store.

mod audit;
mod damage;
mod engines;
mod moving;
mod partitions;
mod tables;
mod turns;

use std::collections::BTreeMap;

use trimtab_fleet::experiment::{Cell, Observation};
use trimtab_fleet_client::{FormerSecret, Role};

use super::*;

fn name(prefix: &str) -> Name {
    Name { service: "tv".to_owned(), prefix: prefix.to_owned() }
}

fn batch(token: i64, sequence: i64, interval: i64, prefixes: &[&str]) -> Batch {
    let report = |prefix: &&str| Report {
        name: name(prefix),
        interval,
        version: sequence,
        bytes: format!("{token}/{sequence}").into_bytes(),
    };
    let digest = [sequence as u8; 32];
    let reports = prefixes.iter().map(report).collect();
    Batch { token, sequence, digest, received_ms: 1000 + sequence, reports }
}

fn lengths() -> Lengths {
    Lengths::from([("tv".to_owned(), 1000)])
}

fn due(through: i64, limit: usize) -> Due<'static> {
    Due { service: "tv", through, limit, now_ms: 5000 }
}

fn decide(open: &Open) -> Result<Closed, String> {
    let next = open.state.as_ref().map_or(1, |state| state.parse::<i64>().expect("a number") + 1);
    Ok(Closed {
        state: Some(next.to_string()),
        configuration: Some((next, format!("{{\"try\":{next}}}"))),
        reward: Some(next as f64),
        detail: format!("{}", open.reports.len()),
        measured: None,
        leaves: None,
        shown: Vec::new(),
    })
}

/// Decides that nothing changes.
fn still(_: &Open) -> Result<Closed, String> {
    Ok(Closed {
        state: None,
        configuration: None,
        reward: None,
        detail: "{}".to_owned(),
        measured: None,
        leaves: None,
        shown: Vec::new(),
    })
}

/// PostgreSQL and NATS, once for all tests, where this machine has them.
fn servers() -> Option<std::sync::Arc<trimtab_servers::Servers>> {
    use std::sync::{Arc, Mutex, Weak};
    static RUNNING: Mutex<Weak<trimtab_servers::Servers>> = Mutex::new(Weak::new());
    let mut running = RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(servers) = running.upgrade() {
        return Some(servers);
    }
    let servers = Arc::new(trimtab_servers::Servers::for_tests()?);
    *running = Arc::downgrade(&servers);
    Some(servers)
}

/// An engine's store on these servers, with a broker and without.
fn ways(servers: &trimtab_servers::Servers) -> [(crate::config::Config, Shared); 2] {
    [true, false].map(|broker| shared(servers, broker))
}

/// An engine's store on these servers.
fn shared(servers: &trimtab_servers::Servers, broker: bool) -> (crate::config::Config, Shared) {
    opened(&servers.configuration(broker))
}

/// The store of such a configuration.
fn opened(store: &str) -> (crate::config::Config, Shared) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.toml");
    std::fs::write(&path, format!("services = \"s\"\n{store}")).expect("a file");
    let config = crate::config::Config::read(&path).expect("a configuration");
    let store = join(&config);
    (config, store)
}

/// What one more engine opens.
fn join(config: &crate::config::Config) -> Shared {
    let crate::config::Keep::Shared { postgres, broker } = &config.store else {
        panic!("it shares")
    };
    let tables = Postgres::open(postgres, &lengths()).expect("tables");
    match broker {
        None => Shared::tables(tables).expect("a way to tell of changes"),
        Some(broker) => {
            let broker = crate::broker::Broker::open(broker, 1000).expect("a broker");
            Shared::with_broker(tables, broker)
        }
    }
}

/// Runs a test on every store that this machine has.
fn on_every_store(test: impl Fn(&dyn Store)) {
    let folder = tempfile::tempdir().expect("a folder");
    test(&Sqlite::open(&folder.path().join("engine.db"), &lengths()).expect("a store"));
    if let Some(servers) = servers() {
        ways(&servers).iter().for_each(|(_, store)| test(store));
    }
}

#[test]
fn a_batch_counts_once_however_often_it_is_sent() {
    on_every_store(|store| {
        let first = batch(1, 7, 10, &["a", "b"]);
        assert_eq!(
            store.accept(std::slice::from_ref(&first)),
            Ok(vec![Outcome::Accepted { late: 0, repeated: 0 }])
        );
        assert_eq!(
            store.accept(std::slice::from_ref(&first)),
            Ok(vec![Outcome::Again { late: 0 }])
        );
        let other = Batch { digest: [99; 32], ..first };
        assert_eq!(store.accept(&[other]), Ok(vec![Outcome::Replayed { last: 7 }]));
        let older = batch(1, 6, 10, &["a"]);
        assert_eq!(store.accept(&[older]), Ok(vec![Outcome::Replayed { last: 7 }]));
        assert_eq!(
            store.accept(&[batch(2, 1, 10, &["a"])]),
            Ok(vec![Outcome::Accepted { late: 0, repeated: 0 }])
        );
        assert_eq!(store.counts().unwrap().waiting_reports, 3);
        assert_eq!(store.counts().unwrap().edges, 2);
        let mut seen = store.edges_seen().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, [(1, 1007), (2, 1001)], "when each reported last");
        // Several at once, of which one is refused: the others are kept.
        let many = [batch(1, 8, 10, &["c"]), batch(1, 8, 11, &["d"]), batch(2, 2, 10, &["c"])];
        let many = many.map(|mut one| {
            one.digest[0] = one.reports[0].interval as u8;
            one
        });
        let kept = Outcome::Accepted { late: 0, repeated: 0 };
        assert_eq!(store.accept(&many), Ok(vec![kept, Outcome::Replayed { last: 8 }, kept]));
        assert_eq!(store.counts().unwrap().waiting_reports, 5);
    });
}

#[test]
fn a_report_counts_once_under_whichever_number() {
    on_every_store(|store| {
        let first = batch(1, 7, 10, &["a", "b"]);
        assert_eq!(
            store.accept(std::slice::from_ref(&first)),
            Ok(vec![Outcome::Accepted { late: 0, repeated: 0 }])
        );
        // An edge that did not hear the answer sends it under its next number, with one more.
        let mut renumbered = Batch { sequence: 8, digest: [8; 32], ..first.clone() };
        renumbered.reports.push(Report { name: name("c"), ..first.reports[0].clone() });
        assert_eq!(
            store.accept(&[renumbered]),
            Ok(vec![Outcome::Accepted { late: 0, repeated: 2 }])
        );
        // Both at once, as when the broker hands out what waited.
        let twice = [9, 10].map(|sequence| Batch { sequence, ..batch(1, 20, 11, &["a"]) });
        let told = store.accept(&twice).unwrap();
        let accepted = |repeated| Outcome::Accepted { late: 0, repeated };
        assert_eq!(told, [accepted(0), accepted(1)]);
        // Another edge, another interval and another version are other reports.
        let other = Batch { token: 2, ..batch(1, 7, 10, &["a"]) };
        assert_eq!(store.accept(&[other, batch(1, 21, 10, &["a"])]).unwrap(), [accepted(0); 2]);
        assert_eq!(store.counts().unwrap().waiting_reports, 6);
        let mut reports = Vec::new();
        let mut note = |open: &Open| {
            reports.push((open.interval, open.name.prefix.clone(), open.reports.len()));
            decide(open)
        };
        while store.close(&due(11, 10), &mut note).unwrap().0 > 0 {}
        reports.sort();
        let all = [(10, "a", 3), (10, "b", 1), (10, "c", 1), (11, "a", 1)];
        assert_eq!(reports, all.map(|(interval, name, n)| (interval, name.to_owned(), n)));
    });
}

#[test]
fn intervals_are_closed_in_order_once_each_and_what_is_late_is_told() {
    on_every_store(|store| {
        store
            .accept(&[
                batch(1, 1, 11, &["a"]),
                batch(1, 2, 10, &["a", "b"]),
                batch(2, 1, 10, &["a"]),
            ])
            .unwrap();
        let mut seen = Vec::new();
        let mut note = |open: &Open| {
            seen.push((
                open.interval,
                open.name.prefix.clone(),
                open.reports.len(),
                open.state.clone(),
            ));
            decide(open)
        };
        assert_eq!(store.close(&due(9, 10), &mut note), Ok((0, vec![])), "none is due");
        // Aggregates of an interval come in any order.
        let (closed, mut changed) = store.close(&due(11, 2), &mut note).unwrap();
        changed.sort();
        assert_eq!((closed, changed), (2, vec![name("a"), name("b")]));
        assert_eq!(store.close(&due(11, 2), &mut note), Ok((1, vec![name("a")])));
        seen.sort();
        assert_eq!(
            seen,
            [
                (10, "a".to_owned(), 2, None),
                (10, "b".to_owned(), 1, None),
                (11, "a".to_owned(), 1, Some("1".to_owned()))
            ]
        );
        let a = store.aggregate(&name("a")).unwrap().unwrap();
        assert_eq!((a.version, a.closed, a.reward, a.decisions), (2, Some(11), Some(2.0), 2));
        assert_eq!(a.configuration, "{\"try\":2}");
        let decisions = store.decisions(a.id, i64::MAX, 10).unwrap();
        let kept: Vec<_> = decisions.iter().map(|d| (d.interval, d.version, d.reports)).collect();
        assert_eq!(kept, [(11, 1, 1), (10, 0, 2)]);
        assert_eq!(store.decisions(a.id, 11, 10).unwrap().len(), 1);
        // Late, before and after the engine was started again.
        assert_eq!(
            store.accept(&[batch(3, 1, 11, &["a", "b"])]),
            Ok(vec![Outcome::Accepted { late: 1, repeated: 0 }])
        );
        let again = store.accept(&[batch(3, 1, 11, &["a", "b"])]);
        assert_eq!(again, Ok(vec![Outcome::Again { late: 1 }]), "the same answer once more");
        assert_eq!(store.counts().unwrap().waiting_reports, 1);
        let force = store.in_force(&[name("a"), name("none")]).unwrap();
        assert_eq!(
            force,
            [InForce { name: name("a"), version: 2, configuration: "{\"try\":2}".to_owned() }]
        );
    });
}

#[test]
fn a_decision_without_a_new_configuration_leaves_the_old_one() {
    on_every_store(|store| {
        store.accept(&[batch(1, 1, 1, &["a"]), batch(1, 2, 2, &["a"])]).unwrap();
        store.close(&due(1, 9), &mut decide).unwrap();
        assert_eq!(store.close(&due(2, 9), &mut still), Ok((1, vec![])));
        let a = store.aggregate(&name("a")).unwrap().unwrap();
        assert_eq!((a.version, a.reward, a.closed), (1, None, Some(2)));
        assert_eq!(store.learnt(a.id), Ok(Some("1".to_owned())));
    });
}

#[test]
fn a_damaged_aggregate_is_set_aside_and_the_others_are_not_delayed() {
    let test = |store: &dyn Store, damage: &dyn Fn(&str)| {
        let prefixes: Vec<String> = (0..300).map(|i| format!("10.0.{i}.0/24")).collect();
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        store.accept(&[batch(1, 1, 1, &prefixes)]).unwrap();
        while store.close(&due(1, 99), &mut decide).unwrap().0 > 0 {}
        // One state is nothing that was ever packed, one row has no state that is understood, and
        // one makes its engine panic.
        damage("UPDATE aggregates SET state = '\\x5a5a5a' WHERE prefix = '10.0.7.0/24'");
        store.accept(&[batch(1, 2, 2, &prefixes), batch(1, 3, 3, &prefixes)]).unwrap();
        let mut picky = |open: &Open| match open.name.prefix.as_str() {
            "10.0.8.0/24" => Err("another version wrote it".to_owned()),
            "10.0.9.0/24" => panic!("nobody expected this"),
            _ => decide(open),
        };
        let mut closed = 0;
        loop {
            let (more, _) = store.close(&due(3, 99), &mut picky).unwrap();
            closed += more;
            if more < 90 {
                break;
            }
        }
        assert_eq!(closed, 2 * 297, "every other aggregate is decided on, twice");
        let mut damaged = store.damaged();
        damaged.sort_by(|a, b| a.prefix.cmp(&b.prefix));
        let names: Vec<&str> = damaged.iter().map(|one| one.prefix.as_str()).collect();
        assert_eq!(names, ["10.0.7.0/24", "10.0.8.0/24", "10.0.9.0/24"]);
        assert!(damaged[1].reason.contains("another version"), "{damaged:?}");
        assert!(damaged[2].reason.contains("nobody expected this"), "{damaged:?}");
        assert_eq!(store.counts().unwrap().waiting_reports, 6, "theirs wait");
        assert_eq!(
            store.close(&due(3, 99), &mut picky),
            Ok((0, vec![])),
            "and nobody tries at once"
        );
        // After a while they are tried again, and go on where they can; a reset helps the one whose state is lost.
        assert_eq!(store.reset(&[name("10.0.7.0/24")], "kim", "lost", 6000), Ok(true));
        assert_eq!(store.reset(&[name("10.9.9.0/24")], "kim", "lost", 6000), Ok(false));
        assert_eq!(store.close(&due(3, 99), &mut decide).unwrap().0, 2);
        let later = Due { now_ms: 65_000, ..due(3, 99) };
        assert_eq!(store.close(&later, &mut decide).unwrap().0, 4);
        assert_eq!((store.damaged(), store.counts().unwrap().waiting_reports), (vec![], 0));
        let all = store.audit(i64::MAX, None, 9).unwrap();
        assert_eq!((all[0].action.as_str(), all[0].subject.as_str()), ("reset", "tv 10.0.7.0/24"));
        let id = |prefix| store.number(&name(prefix)).unwrap().unwrap();
        let state = |prefix| store.learnt(id(prefix)).unwrap();
        assert_eq!(
            (state("10.0.7.0/24"), state("10.0.8.0/24")),
            (Some("2".into()), Some("3".into()))
        );
    };
    damage::in_a_file(|store, damage| {
        test(store, &|sql| damage(&sql.replace("'\\x5a5a5a'", "x'5a5a5a'")));
    });
    damage::on_a_server(|store, damage| test(store, damage));
}

#[test]
fn lists_are_searched_and_paged() {
    on_every_store(|store| {
        let prefixes: Vec<String> = (0..25).map(|i| format!("10.0.{i:02}.0/24")).collect();
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        store.accept(&[batch(1, 1, 1, &prefixes)]).unwrap();
        let mut all = Vec::new();
        let mut search = Search { limit: 10, ..Search::default() };
        loop {
            let page = store.aggregates(&search).unwrap();
            let Some(last) = page.last() else { break };
            search.after = Some(last.as_ref().unwrap().name.clone());
            all.extend(page.into_iter().map(|row| row.unwrap().name.prefix));
        }
        assert_eq!(all, prefixes);
        let find = |text: &str| {
            store.aggregates(&Search { text: text.to_owned(), limit: 99, ..Search::default() })
        };
        assert_eq!(find("0.07.").unwrap().len(), 1);
        assert_eq!(find("tv 10.0.1").unwrap().len(), 10);
        assert_eq!(find("%").unwrap().len(), 0, "no pattern");
        let paused = Search { hold: Some(Hold::Paused), limit: 9, ..Search::default() };
        assert_eq!(store.aggregates(&paused).unwrap().len(), 0);
        let other = Search { service: Some("vod".to_owned()), limit: 9, ..Search::default() };
        assert_eq!(store.aggregates(&other).unwrap().len(), 0);
    });
}

#[test]
fn orders_are_carried_out_on_all_or_on_none() {
    on_every_store(|store| {
        store.accept(&[batch(1, 1, 1, &["a", "b", "c"])]).unwrap();
        store.close(&due(1, 9), &mut decide).unwrap();
        let pause = |seen: &Row| {
            let order = Order {
                who: "kim".to_owned(),
                action: "pause",
                hold: Hold::Paused,
                configuration: None,
                state: None,
                detail: String::new(),
                now_ms: 77,
            };
            (seen.clone(), order)
        };
        let rows = || ["a", "b"].map(|prefix| store.aggregate(&name(prefix)).unwrap().unwrap());
        let before = rows();
        let orders = before.each_ref().map(pause);
        // One of them is decided on meanwhile.
        store.accept(&[batch(1, 2, 2, &["b"])]).unwrap();
        store.close(&due(2, 9), &mut decide).unwrap();
        assert_eq!(store.order(&orders), Ok(false));
        assert_eq!(rows().map(|row| row.hold), [Hold::Learning; 2]);
        assert_eq!(store.audit(i64::MAX, None, 9), Ok(vec![]));
        assert_eq!(store.order(&rows().each_ref().map(pause)), Ok(true));
        assert_eq!(rows().map(|row| row.hold), [Hold::Paused; 2]);
        let subjects = || -> Vec<String> {
            store.audit(i64::MAX, None, 9).unwrap().into_iter().map(|line| line.subject).collect()
        };
        assert_eq!(subjects(), ["tv b", "tv a"]);
        // The same of a reset.
        let names = ["a", "stranger", "b"].map(name);
        assert_eq!(store.reset(&names, "kim", "", 78), Ok(false));
        assert_eq!((rows().map(|row| row.hold), subjects().len()), ([Hold::Paused; 2], 2));
        assert_eq!(store.reset(&[name("b"), name("a")], "kim", "", 78), Ok(true));
        assert_eq!(rows().map(|row| row.hold), [Hold::Learning; 2]);
        assert_eq!(subjects()[..2], ["tv a", "tv b"]);
    });
}

#[test]
fn an_order_is_carried_out_on_what_its_giver_saw_and_written_down() {
    on_every_store(|store| {
        store.accept(&[batch(1, 1, 1, &["a"])]).unwrap();
        let order = Order {
            who: "kim".to_owned(),
            action: "pin",
            hold: Hold::Pinned,
            configuration: Some((2, "{}".to_owned())),
            state: Some("{\"held\":true}".to_owned()),
            detail: "because".to_owned(),
            now_ms: 77,
        };
        let seen = store.aggregate(&name("a")).unwrap().unwrap();
        store.close(&due(1, 9), &mut decide).unwrap();
        assert_eq!(
            store.order(&[(seen.clone(), order.clone())]),
            Ok(false),
            "it has changed since"
        );
        assert_eq!(store.audit(i64::MAX, None, 9), Ok(vec![]));
        let seen = store.aggregate(&name("a")).unwrap().unwrap();
        assert_eq!(store.order(&[(seen.clone(), order.clone())]), Ok(true));
        assert_eq!(
            store.order(&[(seen.clone(), order.clone())]),
            Ok(false),
            "somebody else was faster"
        );
        let a = store.aggregate(&name("a")).unwrap().unwrap();
        assert_eq!(
            (a.hold, a.version, a.configuration.as_str(), a.changed_ms),
            (Hold::Pinned, 2, "{}", 77)
        );
        assert_eq!(store.learnt(a.id), Ok(Some("{\"held\":true}".to_owned())));
        assert_eq!(store.counts().unwrap().pinned, 1);
        let log = store.audit(i64::MAX, None, 9).unwrap();
        assert_eq!(log.len(), 1);
        assert_eq!(
            (log[0].who.as_str(), log[0].action.as_str(), log[0].subject.as_str()),
            ("kim", "pin", "tv a")
        );
    });
}

fn study(name: &str, members: Vec<(i64, i64, Option<f64>)>) -> NewStudy {
    NewStudy {
        service: "tv".to_owned(),
        name: name.to_owned(),
        kind: StudyKind::Experiment,
        document: "{}".to_owned(),
        members,
        who: "kim".to_owned(),
        detail: String::new(),
        now_ms: 6000,
    }
}

fn going(standing: Standing) -> StudyStep {
    StudyStep {
        document: "{\"next\":1}".to_owned(),
        standing,
        who: "kim".to_owned(),
        action: "experiment over",
        detail: String::new(),
        now_ms: 7000,
    }
}

#[test]
fn a_study_is_begun_once_measured_once_and_changed_by_who_saw_it() {
    on_every_store(|store| {
        store.accept(&[batch(1, 1, 1, &["a", "b"]), batch(1, 2, 2, &["a", "b"])]).unwrap();
        store.close(&due(1, 9), &mut decide).unwrap();
        let all = store.candidates("tv", 1).unwrap();
        let known: Vec<_> =
            all.iter().map(|one| (one.name.prefix.as_str(), one.baseline)).collect();
        assert_eq!(known, [("a", Some(1.0)), ("b", Some(1.0))]);
        assert_eq!(store.candidates("tv", 2), Ok(vec![]), "none was seen since");
        let members = vec![(all[0].aggregate, 1, Some(1.0)), (all[1].aggregate, 0, None)];
        assert_eq!(store.begin(&study("x", members)), Ok(Begun::Yes));
        assert_eq!(store.begin(&study("y", vec![])), Ok(Begun::Running("x".to_owned())));
        // Each interval says what it adds, and gets the place of its aggregate.
        let mut places = BTreeMap::new();
        let mut measuring = |open: &Open| {
            places.insert(open.name.prefix.clone(), open.studies[0].place);
            let observation = Observation::Values(vec![Some(open.interval as f64)]);
            let study = open.studies[0].study.id;
            let measured = Some(Measured { study, block: 0, arm: 1, observation });
            // What an arm did to an aggregate takes it out, too.
            let leaves =
                (open.name.prefix == "b" && open.interval == 3).then(|| "alarm".to_owned());
            Ok(Closed { measured, leaves, ..decide(open)? })
        };
        store.close(&due(2, 9), &mut measuring).unwrap();
        // An order takes an aggregate out.
        let seen = store.aggregate(&name("a")).unwrap().unwrap();
        let order = Order {
            who: "kim".to_owned(),
            action: "pause",
            hold: Hold::Paused,
            configuration: None,
            state: None,
            detail: String::new(),
            now_ms: 77,
        };
        assert_eq!(store.order(&[(seen.clone(), order.clone())]), Ok(true));
        store.accept(&[batch(1, 3, 3, &["a", "b"])]).unwrap();
        store.close(&due(3, 9), &mut measuring).unwrap();
        assert_eq!(places, BTreeMap::from([("a".to_owned(), None), ("b".to_owned(), Some(0))]));
        let found = store.studies(None, StudyKind::Experiment).unwrap().remove(0);
        let left: Vec<_> = store.members(found.id).unwrap().iter().map(|m| m.left_ms).collect();
        assert_eq!(left, [Some(77), Some(5000)]);
        let mut sums = Cell::default();
        for value in [2.0, 3.0] {
            sums.add(&Observation::Values(vec![Some(value)]));
        }
        let cells = store.cells(found.id).unwrap();
        assert_eq!(cells.iter().map(|c| (c.arm, &c.cell)).collect::<Vec<_>>(), [(1, &sums); 2]);
        // Of two who go on with what they both saw, one does.
        assert_eq!(store.step(&found, &going(Standing::Running)), Ok(true));
        assert_eq!(store.step(&found, &going(Standing::Past)), Ok(false));
        let found = store.studies(Some("tv"), StudyKind::Experiment).unwrap().remove(0);
        assert_eq!((found.revision, found.document.as_str()), (2, "{\"next\":1}"));
        assert_eq!(store.step(&found, &going(Standing::Past)), Ok(true));
        assert_eq!(store.begin(&study("x", vec![])), Ok(Begun::NameTaken));
        assert_eq!(store.active_studies("tv"), Ok(vec![]));
        let log: Vec<String> =
            store.audit(i64::MAX, None, 9).unwrap().into_iter().map(|line| line.action).collect();
        assert_eq!(
            log,
            ["experiment over", "experiment over", "leave", "leave", "pause", "experiment begun"]
        );
        // What it showed is forgotten in time, what came of it is not.
        store.forget(7001, 9).unwrap();
        assert_eq!((store.cells(found.id), store.members(found.id)), (Ok(vec![]), Ok(vec![])));
        assert_eq!(store.studies(None, StudyKind::Experiment).unwrap().len(), 1);
    });
}

#[test]
fn what_is_kept_in_force_is_replaced_by_what_is_next() {
    on_every_store(|store| {
        for (round, name) in ["one", "two"].into_iter().enumerate() {
            let new = NewStudy { kind: StudyKind::Rollout, ..study(name, vec![]) };
            assert_eq!(store.begin(&new), Ok(Begun::Yes));
            let active = store.active_studies("tv").unwrap();
            assert_eq!(active.len(), round + 1, "the running one, and what is kept");
            assert_eq!(active[0].name, name);
            assert_eq!(store.step(&active[0], &going(Standing::Kept)), Ok(true));
            let active = store.active_studies("tv").unwrap();
            assert_eq!(active.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), [name]);
        }
    });
}

/// An edge's, which expires at 500.
fn edge_token() -> KeptToken {
    let token = Token {
        id: 0,
        name: "edge-1".to_owned(),
        role: Role::Edge,
        services: vec!["tv".to_owned()],
        prefixes: vec!["203.0.113.0/24".to_owned()],
        created_ms: 5,
        revoked_ms: None,
        expires_ms: Some(500),
        used_ms: None,
        former: None,
    };
    KeptToken { token, hash: vec![3; 32], former: None }
}

/// Another secret, made at a time, which is valid for 1000 ms; the one before is for 100 ms more.
fn rotation(name: &str, now_ms: i64) -> Rotation {
    Rotation {
        name: name.to_owned(),
        hash: now_ms.to_be_bytes().repeat(4),
        expires_ms: Some(now_ms + 1000),
        former_expires_ms: now_ms + 100,
        now_ms,
    }
}

#[test]
fn a_secret_is_replaced_and_the_one_before_is_kept_for_a_while() {
    on_every_store(|store| {
        let id = store.add_token(&edge_token(), "root").unwrap().expect("a new name");
        let uses = |all: &[(&[u8], i64)]| {
            let one = |(hash, at_ms): &(&[u8], i64)| Use {
                token: id,
                hash: hash.to_vec(),
                at_ms: *at_ms,
            };
            store.used(&all.iter().map(one).collect::<Vec<_>>()).unwrap();
        };
        let token = || store.tokens().unwrap().remove(0);
        uses(&[(&[3; 32], 50)]);
        assert_eq!(token().token.used_ms, Some(50));
        uses(&[(&[3; 32], 40)]);
        assert_eq!(token().token.used_ms, Some(50), "later is kept");
        assert_eq!(store.rotate_token(&rotation("edge-1", 450), "kim"), Ok(true));
        let KeptToken { token: now, hash, former } = token();
        assert_eq!((hash, former), (rotation("", 450).hash, Some(vec![3; 32])));
        // It expires when it would have, which is before the time that both may be valid.
        let before = FormerSecret { expires_ms: 500, used_ms: Some(50) };
        assert_eq!((now.expires_ms, now.used_ms, now.former), (Some(1450), None, Some(before)));
        assert_eq!((now.id, now.created_ms), (id, 5), "it is the same token");
        // Each secret is used by itself, also where it was replaced meanwhile.
        uses(&[(&[3; 32], 460), (&rotation("", 450).hash, 470), (&[9; 32], 480)]);
        let now = token().token;
        assert_eq!((now.used_ms, now.former.unwrap().used_ms), (Some(470), Some(460)));
        assert_eq!(store.rotate_token(&rotation("edge-1", 600), "kim"), Ok(true));
        let now = token();
        assert_eq!(now.former, Some(rotation("", 450).hash));
        assert_eq!(now.token.former, Some(FormerSecret { expires_ms: 700, used_ms: Some(470) }));
        let line = store.audit(i64::MAX, None, 1).unwrap().remove(0);
        assert_eq!((line.action.as_str(), line.subject.as_str()), ("token rotated", "edge-1"));
        assert!(line.detail.starts_with("expires: 1970-01-01 00:00:01; the secret before: 1970"));
        assert_eq!(store.rotate_token(&rotation("edge-2", 600), "kim"), Ok(false));
        assert_eq!(store.revoke_token("edge-1", "kim", 601), Ok(true));
        assert_eq!(store.rotate_token(&rotation("edge-1", 602), "kim"), Ok(false), "revoked");
    });
}

#[test]
fn tokens_come_and_go() {
    on_every_store(|store| {
        let token = edge_token();
        let id = store.add_token(&token, "root").unwrap().expect("a new name");
        assert_eq!(store.add_token(&token, "root"), Ok(None), "the name is taken");
        assert_eq!(
            store.tokens(),
            Ok(vec![KeptToken { token: Token { id, ..token.token.clone() }, ..token }])
        );
        // What a revoked edge said and nobody has learnt from counts for nothing.
        store.accept(&[batch(id, 1, 1, &["a", "b"]), batch(id + 1, 1, 1, &["a"])]).unwrap();
        assert_eq!(store.revoke_token("edge-1", "root", 9), Ok(true));
        assert_eq!(store.counts().unwrap().waiting_reports, 1);
        let all = [name("a"), name("b"), name("c")];
        assert_eq!(store.unknown(&all), Ok(vec![name("c")]));
        assert_eq!(store.revoke_token("edge-1", "root", 10), Ok(false));
        assert_eq!(store.tokens().unwrap()[0].token.revoked_ms, Some(9));
        assert_eq!(store.audit(i64::MAX, None, 9).unwrap().len(), 2);
    });
}

#[test]
fn old_decisions_of_a_file_are_forgotten_a_few_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Sqlite::open(&folder.path().join("engine.db"), &lengths()).expect("a store");
    let batches: Vec<Batch> = (1..=5).map(|i| batch(1, i, i, &["a"])).collect();
    store.accept(&batches).unwrap();
    store.close(&due(3, 9), &mut decide).unwrap();
    store.close(&Due { now_ms: 9000, ..due(5, 9) }, &mut decide).unwrap();
    assert_eq!(store.forget(5000, 2), Ok(0), "not older");
    assert_eq!(store.forget(9000, 2), Ok(2));
    assert_eq!(store.forget(9000, 2), Ok(1));
    let a = store.aggregate(&name("a")).unwrap().unwrap();
    assert_eq!(store.decisions(a.id, i64::MAX, 9).unwrap().len(), 2);
    assert_eq!(store.counts().unwrap().decisions, 5, "how many there were is known");
}

/// As of a service that there is no more.
#[test]
fn old_reports_that_nobody_closes_are_forgotten() {
    on_every_store(|store| {
        store.accept(&[batch(1, 6, 8999, &["a", "b"]), batch(1, 7, 9000, &["a"])]).unwrap();
        assert_eq!(store.forget(9000, 1), Ok(1));
        assert_eq!(store.forget(9000, 9), Ok(1));
        assert_eq!(store.counts().unwrap().waiting_reports, 1);
    });
}

/// `trimtab engine token` may open the file in the moment in which the engine makes it.
#[test]
fn a_file_that_several_make_at_once_opens_for_all() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("engine.db");
        let together = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            let open = || {
                together.wait();
                Sqlite::open(&path, &lengths()).map(drop)
            };
            let opened: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            for one in opened {
                one.join().expect("no panic").expect("it opens");
            }
        });
    }
}

#[test]
fn an_aggregate_is_in_a_wave_once() {
    let waves = |ids: &[i64]| -> Vec<Vec<i64>> {
        waves(ids, |id| *id).into_iter().map(<[i64]>::to_vec).collect()
    };
    assert_eq!(waves(&[1, 2, 3]), [vec![1, 2, 3]]);
    assert_eq!(waves(&[1, 2, 1, 3, 2, 2]), [vec![1, 2], vec![1, 3, 2], vec![2]]);
    assert!(waves(&[]).is_empty());
}

//! What several engines promise that share a store. Each test needs PostgreSQL and NATS, and is of
//! engines with a broker and without.

use super::*;

/// All decisions about these aggregates.
fn decided(store: &dyn Store, prefixes: &[&str]) -> Vec<Decided> {
    let id = |prefix: &&str| store.aggregate(&name(prefix)).unwrap().expect("it is known").id;
    prefixes.iter().flat_map(|p| store.decisions(id(p), i64::MAX, 999).unwrap()).collect()
}

#[test]
fn two_engines_at_once_count_each_report_once() {
    let Some(servers) = servers() else { return };
    for (config, one) in ways(&servers) {
        let other = join(&config);
        let prefixes: Vec<String> = (0..40).map(|i| format!("10.0.{i:02}.0/24")).collect();
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        const BATCHES: i64 = 25;
        std::thread::scope(|scope| {
            for (token, store) in [(1, &one), (2, &other), (3, &one), (4, &other)] {
                let prefixes = &prefixes;
                scope.spawn(move || {
                    for sequence in 1..=BATCHES {
                        let sent = batch(token, sequence, 10, prefixes);
                        let told = store.accept(std::slice::from_ref(&sent)).expect("it is kept");
                        // What was closed meanwhile is late, and told so.
                        assert!(matches!(told[0], Outcome::Accepted { .. }), "{told:?}");
                        let again = store.accept(&[sent]).expect("it is kept");
                        assert_eq!(
                            again,
                            [Outcome::Again { late: 0 }],
                            "whichever engine takes it"
                        );
                    }
                });
            }
        });
        let waiting = 4 * BATCHES * prefixes.len() as i64;
        assert_eq!(one.counts().unwrap().waiting_reports, waiting);
        std::thread::scope(|scope| {
            for store in [&one, &other] {
                scope.spawn(move || while store.close(&due(10, 7), &mut decide).unwrap().0 > 0 {});
            }
        });
        let all = decided(&other, &prefixes);
        assert_eq!(all.len(), prefixes.len(), "one decision for each");
        assert_eq!(all.iter().map(|decision| decision.reports).sum::<i64>(), waiting);
        assert_eq!(one.counts().unwrap().waiting_reports, 0);
    }
}

#[test]
fn two_engines_that_begin_at_the_same_part_decide_side_by_side() {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    let Some(servers) = servers() else { return };
    for (config, one) in ways(&servers) {
        let other = join(&config);
        let prefixes: Vec<String> = (0..200).map(|i| format!("10.0.{i}.0/24")).collect();
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        one.accept(&[batch(1, 1, 10, &prefixes)]).unwrap();
        let (inside, overlaps) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for store in [&one, &other] {
                scope.spawn(|| {
                    let mut slow = |open: &Open| {
                        // A decision that takes this long, so that what counts is who waits for whom and
                        // not the processor or the database.
                        let before = inside.fetch_add(1, SeqCst);
                        overlaps.fetch_add(before, SeqCst);
                        std::thread::sleep(std::time::Duration::from_millis(15));
                        inside.fetch_sub(1, SeqCst);
                        decide(open)
                    };
                    while store.close(&due(10, 20), &mut slow).unwrap().0 > 0 {}
                });
            }
        });
        assert_eq!(decided(&one, &prefixes).len(), prefixes.len(), "one decision for each");
        // With 5 ms for a decision, in lock-step, each waiting for the part that the other one has, 14 and
        // 33 did; side by side 160 to 180, and 60 on a machine with much else to do.
        let overlaps = overlaps.into_inner();
        assert!(overlaps >= prefixes.len() / 4, "{overlaps} began while the other engine decided");
    }
}

#[test]
fn reports_that_come_while_intervals_are_closed_are_kept_or_told_late() {
    let Some(servers) = servers() else { return };
    for (config, one) in ways(&servers) {
        let other = join(&config);
        let prefixes = ["a", "b", "c", "d"];
        let ended = std::sync::atomic::AtomicBool::new(false);
        let (mut kept, mut late) = (0, 0);
        std::thread::scope(|scope| {
            for store in [&one, &other] {
                let ended = &ended;
                scope.spawn(move || {
                    while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                        store.close(&due(i64::MAX, 3), &mut decide).unwrap();
                    }
                });
            }
            for sequence in 1..=60 {
                // Each interval comes three times, from three edges: some after it was closed.
                let sent = batch(sequence % 3, sequence, sequence / 3, &prefixes);
                match one.accept(&[sent]).unwrap()[0] {
                    Outcome::Accepted { late: l, .. } => {
                        late += i64::from(l);
                        kept += prefixes.len() as i64 - i64::from(l);
                    }
                    other => panic!("{other:?}"),
                }
            }
            ended.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while one.close(&due(i64::MAX, 99), &mut decide).unwrap().0 > 0 {}
        let all = decided(&one, &prefixes);
        assert_eq!(
            all.iter().map(|decision| decision.reports).sum::<i64>(),
            kept,
            "{late} were late"
        );
        assert_eq!(one.counts().unwrap().waiting_reports, 0);
    }
}

#[test]
fn a_store_that_lost_its_connections_makes_new_ones() {
    let Some(servers) = servers() else { return };
    for (config, store) in ways(&servers) {
        store.accept(&[batch(1, 1, 1, &["a"])]).unwrap();
        let crate::config::Keep::Shared { postgres, .. } = &config.store else { panic!("shared") };
        for sequence in 2..5 {
            servers.cut_connections(postgres.config.get_dbname().expect("it has a name"));
            assert_eq!(store.counts().unwrap().waiting_reports, sequence - 1);
            assert_eq!(
                store.accept(&[batch(1, sequence, 1, &["a"])]),
                Ok(vec![Outcome::Accepted { late: 0, repeated: 0 }])
            );
        }
    }
}

#[test]
fn changes_are_told_to_the_other_engines() {
    let Some(servers) = servers() else { return };
    for (config, one) in ways(&servers) {
        let other = join(&config);
        let (sender, changes) = std::sync::mpsc::channel();
        let own = sender.clone();
        one.on_change(Box::new(move |names| own.send(("one", names)).expect("somebody listens")));
        other.on_change(Box::new(move |names| sender.send(("other", names)).expect("as above")));
        one.accept(&[batch(1, 1, 1, &["a"])]).unwrap();
        // Whether the other one listens yet cannot be asked: send until it receives.
        let mut interval = 1;
        let heard = loop {
            one.close(&due(interval, 9), &mut decide).unwrap();
            if let Ok(heard) = changes.recv_timeout(std::time::Duration::from_millis(200)) {
                break heard;
            }
            interval += 1;
            assert!(interval < 100, "it never receives");
            one.accept(&[batch(1, interval, interval, &["a"])]).unwrap();
        };
        assert_eq!(heard, ("other", vec![name("a")]), "who closed it knows already");
    }
}

#[test]
fn servers_that_do_not_answer_are_named_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.toml");
    let text = format!(
        "services = \"s\"\n[store]\npostgres = \"host={} dbname=tv\"\n[broker]\nnats = \"nats://127.0.0.1:1\"\n",
        folder.path().display()
    );
    std::fs::write(&path, text).expect("a file");
    let config = crate::config::Config::read(&path).expect("a configuration");
    let crate::config::Keep::Shared { postgres, broker: Some(broker) } = &config.store else {
        panic!("both")
    };
    let said = Postgres::open(postgres, &lengths()).err().expect("nobody is there").to_string();
    assert!(
        said.contains("the database tv of PostgreSQL") && said.contains("[store] postgres"),
        "{said}"
    );
    let said = crate::broker::Broker::open(broker, 1000).err().expect("nobody").to_string();
    assert!(said.contains("nats://127.0.0.1:1") && said.contains("[broker] nats"), "{said}");
    let Some(servers) = servers() else { return };
    let (config, _store) = shared(&servers, true);
    let crate::config::Keep::Shared { broker: Some(broker), .. } = &config.store else {
        panic!("both")
    };
    let said = crate::broker::Broker::open(broker, 1 << 40).err().expect("too large").to_string();
    assert!(said.contains("max_payload") && said.contains("[limits] body"), "{said}");
}

#[test]
fn engines_share_postgresql_by_connections_that_are_lent() {
    let Some(servers) = servers() else { return };
    let Some(pooler) = servers.pooler() else { return };
    let store = servers.configuration(false);
    let (_, direct) = opened(&store);
    let (config, one) = opened(&pooler.configuration(&servers, &store));
    let other = join(&config);
    let (sender, changes) = std::sync::mpsc::channel();
    other.on_change(Box::new(move |names| sender.send(names).expect("somebody listens")));
    let prefixes: Vec<String> = (0..20).map(|i| format!("10.0.{i}.0/24")).collect();
    let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
    std::thread::scope(|scope| {
        // More threads than it has connections to lend.
        for token in 1..=8 {
            let (store, prefixes) = (if token % 2 == 0 { &one } else { &other }, &prefixes);
            scope.spawn(move || {
                for sequence in 1..=10 {
                    store.accept(&[batch(token, sequence, 10, prefixes)]).expect("it is kept");
                }
            });
        }
    });
    assert_eq!(direct.counts().unwrap().waiting_reports, 8 * 10 * 20);
    // The other one may not listen yet.
    let heard = (10..100).find_map(|interval| {
        one.accept(&[batch(9, interval, interval, &prefixes[..1])]).unwrap();
        while one.close(&due(interval, 7), &mut decide).unwrap().0 > 0 {}
        changes.recv_timeout(std::time::Duration::from_millis(200)).ok()
    });
    let heard = heard.expect("changes pass by a connection of its own");
    assert!(heard.iter().all(|changed| prefixes.contains(&changed.prefix.as_str())), "{heard:?}");
    assert_eq!(direct.counts().unwrap().waiting_reports, 0);
}

/// Counts what it decided on in what is kept for all.
#[derive(Default)]
struct Counting {
    heeded: Vec<Option<i64>>,
    since: i64,
}

impl Decide for Counting {
    fn on(&mut self, open: &[Open]) -> Vec<Result<Closed, String>> {
        self.since += open.len() as i64;
        open.iter().map(decide).collect()
    }

    fn heed(&mut self, kept: Option<&str>) {
        self.since = 0;
        self.heeded.push(kept.map(|kept| kept.parse().expect("a number")));
    }

    fn has_found(&self) -> bool {
        self.since > 0
    }

    fn found(&mut self, kept: Option<&str>) -> Option<String> {
        let before: i64 = kept.map_or(0, |kept| kept.parse().expect("a number"));
        Some((before + self.since).to_string())
    }
}

#[test]
fn what_was_found_is_kept_with_the_decisions() {
    on_every_store(|store| {
        store.accept(&[batch(1, 1, 10, &["a", "b", "c"])]).unwrap();
        let mut counting = Counting::default();
        while store.close(&due(10, 99), &mut counting).unwrap().0 > 0 {}
        assert_eq!(counting.heeded[0], None, "nothing is kept at first");
        store.accept(&[batch(1, 2, 11, &["a"])]).unwrap();
        // What fails leaves nothing.
        let mut failing = |_: &Open| Err("it is not understood".to_owned());
        assert_eq!(store.close(&due(11, 99), &mut failing).unwrap().0, 0);
        let mut counting = Counting::default();
        store.close(&Due { now_ms: i64::MAX, ..due(11, 99) }, &mut counting).unwrap();
        assert_eq!(counting.heeded, [Some(3)]);
    });
}

#[test]
fn what_two_engines_found_at_once_is_added_up() {
    let Some(servers) = servers() else { return };
    for (config, one) in ways(&servers) {
        let other = join(&config);
        let prefixes: Vec<String> = (0..120).map(|i| format!("10.0.{i}.0/24")).collect();
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        one.accept(&[batch(1, 1, 10, &prefixes)]).unwrap();
        std::thread::scope(|scope| {
            for store in [&one, &other] {
                scope.spawn(|| {
                    let mut counting = Counting::default();
                    while store.close(&due(10, 20), &mut counting).unwrap().0 > 0 {}
                });
            }
        });
        one.accept(&[batch(1, 2, 11, &["a"])]).unwrap();
        let mut counting = Counting::default();
        one.close(&due(11, 20), &mut counting).unwrap();
        assert_eq!(counting.heeded, [Some(prefixes.len() as i64)]);
    }
}

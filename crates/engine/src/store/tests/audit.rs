//! The audit: one chain, in which every change is found.

use super::*;

fn line(at_ms: i64, subject: &str) -> Line {
    Line {
        at_ms,
        who: "kim".to_owned(),
        action: "pin",
        subject: subject.to_owned(),
        detail: "because".to_owned(),
    }
}

/// From then on the tables refuse nothing.
const UNBOUND: &str = "DROP TRIGGER audit_unchanged; DROP TRIGGER audit_kept;";

/// Runs a test on each store that this machine has, with somebody who writes to its tables behind the engine's
/// back: what they write in SQL, and how many rows that changed, or why not.
fn with_a_stranger(test: impl Fn(&dyn Store, &mut dyn FnMut(&str) -> Result<(), String>)) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.db");
    let store = Sqlite::open(&path, &lengths()).expect("a store");
    let other = rusqlite::Connection::open(&path).expect("the file");
    test(&store, &mut |sql| other.execute_batch(sql).map_err(|e| e.to_string()));
    let Some(servers) = servers() else { return };
    let (config, store) = shared(&servers, false);
    let crate::config::Keep::Shared { postgres, .. } = &config.store else { panic!("shared") };
    let mut other = postgres.config.connect(::postgres::NoTls).expect("the server");
    let sql_of = |sql: &str| match sql {
        UNBOUND => UNBOUND.replace(';', " ON audit;"),
        sql => sql.replace("x'", "'\\x"),
    };
    test(&store, &mut |sql| {
        other.batch_execute(&sql_of(sql)).map_err(|e| format!("{:?}", e.as_db_error()))
    });
}

#[test]
fn what_is_changed_removed_or_inserted_is_found_where_it_was() {
    let insert = |line: i64, hash: &str| {
        format!("INSERT INTO audit VALUES ({line}, 5, 'kim', 'pin', 'tv z', '', x'00', x'{hash}')")
    };
    for (sql, found) in [
        ("UPDATE audit SET who = 'robin' WHERE id = 3".to_owned(), Tampered::Changed { line: 3 }),
        ("UPDATE audit SET at_ms = 4 WHERE id = 6".to_owned(), Tampered::Changed { line: 6 }),
        ("DELETE FROM audit WHERE id = 1".to_owned(), Tampered::Removed { from: 1, to: 1 }),
        ("DELETE FROM audit WHERE id IN (3, 4)".to_owned(), Tampered::Removed { from: 3, to: 4 }),
        ("DELETE FROM audit WHERE id = 6".to_owned(), Tampered::Removed { from: 6, to: 6 }),
        ("DELETE FROM audit".to_owned(), Tampered::Removed { from: 1, to: 6 }),
        (insert(7, "00"), Tampered::Changed { line: 7 }),
        (
            format!(
                "UPDATE audit SET id = -id WHERE id > 2; UPDATE audit SET id = 1 - id WHERE id < 0; {}",
                insert(3, "00")
            ),
            Tampered::Changed { line: 3 },
        ),
        ("DELETE FROM meta WHERE key = 'audit'".to_owned(), Tampered::Endless),
    ] {
        with_a_stranger(|store, write| {
            let lines: Vec<Line> = (1..=6).map(|i| line(i, &format!("tv {i}"))).collect();
            store.write_down(&lines).unwrap();
            assert_eq!(store.check_audit(None).unwrap().found, None);
            for (does, refusal) in [
                ("UPDATE audit", "no line of the audit is ever changed"),
                ("DELETE FROM audit", "no line of the audit goes before the last one announces it"),
            ] {
                if sql.contains(does) {
                    let refused = write(&sql).unwrap_err();
                    assert!(refused.contains(refusal), "{refused}");
                }
            }
            write(UNBOUND).unwrap();
            write(&sql).unwrap();
            assert_eq!(store.check_audit(None).unwrap().found, Some(found), "{sql}");
        });
    }
}

#[test]
fn old_lines_go_by_days_and_what_is_left_is_whole() {
    const DAY: i64 = AUDIT_SLACK_MS;
    with_a_stranger(|store, write| {
        let lines: Vec<Line> = (0..10).map(|day| line(day * DAY, &format!("tv {day}"))).collect();
        store.write_down(&lines).unwrap();
        let early = store.check_audit(None).unwrap().end;
        let forget = |day: i64| store.forget_audit(day * DAY, 100 * DAY + day).unwrap();
        assert_eq!((forget(0), forget(1)), (0, 0), "the oldest is no day older");
        assert_eq!((forget(4), forget(4), forget(5)), (4, 0, 0));
        let check = store.check_audit(Some(&early)).unwrap();
        assert_eq!((check.lines, check.first, check.end.line, check.found), (7, 5, 11, None));
        let last = store.audit(i64::MAX, None, 1).unwrap().remove(0);
        assert_eq!((last.who.as_str(), last.action.as_str()), (ITSELF, FORGOTTEN));
        assert_eq!(last.subject, "lines 1 to 4");
        assert_eq!(forget(7), 3);
        let check = store.check_audit(Some(&early)).unwrap();
        assert_eq!((check.lines, check.first, check.found), (5, 8, None));
        // Where all are old, the line about them is left; and what is forgotten no longer proves anything.
        assert_eq!(forget(200), 5);
        assert_eq!(store.write_down(&[line(9, "tv z")]), Ok(()));
        let check = store.check_audit(None).unwrap();
        assert_eq!((check.lines, check.first, check.end.line, check.found), (2, 13, 14, None));
        let known = store.check_audit(Some(&early)).unwrap().found;
        assert_eq!(known, Some(Tampered::TooOld { line: 10 }));
        // Who removes the oldest lines by themselves is found.
        assert!(write("DELETE FROM audit WHERE id = 13").is_err());
        write(UNBOUND).unwrap();
        write("DELETE FROM audit WHERE id = 13").unwrap();
        let found = store.check_audit(None).unwrap().found;
        assert_eq!(found, Some(Tampered::Removed { from: 1, to: 13 }));
    });
}

#[test]
fn what_was_refused_and_what_was_done_are_listed_apart() {
    on_every_store(|store| {
        let refused = Line { action: REFUSED, ..line(2, "GET /v1/status") };
        store.write_down(&[line(1, "tv a"), refused, line(3, "tv b")]).unwrap();
        let subjects = |before, refused| {
            let lines = store.audit(before, refused, 9).unwrap();
            lines.into_iter().map(|line| line.subject).collect::<Vec<_>>()
        };
        assert_eq!(subjects(i64::MAX, None), ["tv b", "GET /v1/status", "tv a"]);
        assert_eq!(subjects(i64::MAX, Some(true)), ["GET /v1/status"]);
        assert_eq!(subjects(i64::MAX, Some(false)), ["tv b", "tv a"]);
        assert_eq!(subjects(3, Some(false)), ["tv a"]);
    });
}

/// Writes lines from several threads at once, and checks what came of it.
fn written_at_once(stores: &[&dyn Store]) {
    const EACH: i64 = 25;
    std::thread::scope(|scope| {
        for (i, store) in stores.iter().enumerate() {
            scope.spawn(move || {
                for n in 0..EACH {
                    store.write_down(&[line(n, &format!("{i}/{n}")), line(n, "again")]).unwrap();
                }
            });
        }
    });
    let check = stores[0].check_audit(None).unwrap();
    let all = stores.len() as u64 * EACH as u64 * 2;
    assert_eq!((check.lines, check.found), (all, None));
    // What is written at once stays together.
    let lines = stores[0].audit(i64::MAX, None, 999).unwrap();
    for pair in lines.chunks(2) {
        assert_eq!((pair[0].subject.as_str(), pair[1].at_ms), ("again", pair[0].at_ms));
    }
}

#[test]
fn who_write_at_once_write_one_chain() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.db");
    let open = || Sqlite::open(&path, &lengths()).expect("a store");
    let (one, other) = (open(), open());
    written_at_once(&[&one, &other, &one, &other]);
    let Some(servers) = servers() else { return };
    let (config, one) = shared(&servers, false);
    let other = join(&config);
    written_at_once(&[&one, &other, &one, &other]);
}

#[test]
fn of_several_who_change_the_safe_orders_at_once_none_is_lost() {
    on_every_store(|store| {
        assert_eq!(store.safe_orders(), Ok(String::new()));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let mut add =
                            |text: &str| Ok((format!("{text}x"), line(5, "every service")));
                        assert_eq!(store.change_safe_orders(&mut add), Ok(Ok(())));
                    }
                });
            }
        });
        assert_eq!(store.safe_orders(), Ok("x".repeat(40)));
        let refused = store.change_safe_orders(&mut |_| Err("no".to_owned()));
        assert_eq!(refused, Ok(Err("no".to_owned())));
        let lines = store.check_audit(None).unwrap().lines;
        assert_eq!((store.safe_orders().unwrap().len(), lines), (40, 40));
    });
}

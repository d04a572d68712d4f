//! Tables of older versions, and files that are damaged or full.

use super::*;

/// Makes one table of decisions in PostgreSQL, as version 6 had it.
const BACK_TO_6: &str = "ALTER TABLE decisions RENAME TO partitioned;
    CREATE TABLE decisions (LIKE partitioned); INSERT INTO decisions SELECT * FROM partitioned;
    DROP TABLE partitioned; ALTER TABLE decisions ADD PRIMARY KEY (interval, aggregate);
    CREATE INDEX decisions_at ON decisions (at_ms);
    UPDATE meta SET value = '6' WHERE key = 'schema';";

/// Makes tables of version 5 of those of version 6.
const BACK_TO_5: &str = "DROP TABLE token_times; UPDATE meta SET value = '5' WHERE key = 'schema';";

/// Makes an audit of version 4 of that of version 5.
const BACK_TO_4: &str = "DROP TABLE token_times; DROP TABLE audit;
    CREATE TABLE audit (id INTEGER PRIMARY KEY, at_ms BIGINT NOT NULL, who TEXT NOT NULL,
        action TEXT NOT NULL, subject TEXT NOT NULL, detail TEXT NOT NULL);
    INSERT INTO audit VALUES (7, 50, 'kim', 'pin', 'tv a', 'x');
    INSERT INTO audit VALUES (9, 60, 'kim', 'pause', 'tv a', 'y');
    DELETE FROM meta WHERE key = 'audit'; UPDATE meta SET value = '4' WHERE key = 'schema';";

/// PostgreSQL has partitions and a function for the audit's trigger, too, and numbers of another size.
fn back_on_server(back: &str) -> String {
    let back = back.replace(
        "DROP TABLE audit;",
        "DROP TABLE audit; DROP FUNCTION audit_unchanged, audit_kept;",
    );
    format!("{BACK_TO_6} {}", back.replace("id INTEGER PRIMARY KEY", "id BIGINT PRIMARY KEY"))
}

/// Makes tables of version 3 of those of version 4.
const BACK_TO_3: &str = "DROP INDEX reports_once; ALTER TABLE reports DROP COLUMN edge;
    ALTER TABLE reports DROP COLUMN version;
    ALTER TABLE edges DROP COLUMN late;
    ALTER TABLE tokens DROP COLUMN prefixes; UPDATE meta SET value = '3' WHERE key = 'schema';";

#[test]
fn tokens_of_version_5_are_valid_until_they_are_rotated_with_a_time() {
    let goes_on = |store: &dyn Store| {
        let kept = store.tokens().unwrap().remove(0);
        assert_eq!((kept.token.expires_ms, kept.token.used_ms, kept.former), (None, None, None));
        let used = Use { token: kept.token.id, hash: kept.hash.clone(), at_ms: 90 };
        store.used(&[used]).unwrap();
        assert_eq!(store.rotate_token(&rotation("edge-1", 100), "kim"), Ok(true));
        let token = store.tokens().unwrap().remove(0).token;
        assert_eq!((token.expires_ms, token.used_ms), (Some(1100), None));
        let former = FormerSecret { expires_ms: 200, used_ms: Some(90) };
        assert_eq!(token.former, Some(former));
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.db");
    let store = Sqlite::open(&path, &lengths()).unwrap();
    store.add_token(&edge_token(), "root").unwrap().expect("a new name");
    store.writer().db.execute_batch(BACK_TO_5).unwrap();
    drop(store);
    goes_on(&Sqlite::open(&path, &lengths()).unwrap());
    let Some(servers) = servers() else { return };
    let (config, store) = shared(&servers, false);
    store.add_token(&edge_token(), "root").unwrap().expect("a new name");
    let crate::config::Keep::Shared { postgres, .. } = &config.store else { panic!("shared") };
    let back = back_on_server(BACK_TO_5);
    postgres.config.connect(::postgres::NoTls).unwrap().batch_execute(&back).unwrap();
    drop(store);
    goes_on(&join(&config));
}

#[test]
fn decisions_of_version_6_stay_where_they_are_and_go_in_time() {
    let Some(servers) = servers() else { return };
    let (config, store) = shared(&servers, false);
    let crate::config::Keep::Shared { postgres, .. } = &config.store else { panic!("shared") };
    let mut db = postgres.config.connect(::postgres::NoTls).unwrap();
    let day = crate::store::postgres::DAY_MS;
    let all = [1, day, 5 * day];
    let sent: Vec<Batch> = all.iter().zip(1..).map(|(at, n)| batch(1, n, *at, &["a"])).collect();
    store.accept(&sent).unwrap();
    let at = |now_ms| Due { now_ms, ..due(9 * day, 9) };
    store.close(&at(6 * day), &mut decide).unwrap();
    let id = store.aggregate(&name("a")).unwrap().expect("it is known").id;
    let kept = store.decisions(id, i64::MAX, 9).unwrap();
    assert_eq!(kept.len(), 3);
    db.batch_execute(BACK_TO_6).unwrap();
    let refused = Postgres::open(postgres, &lengths()).err().expect("an engine runs");
    assert!(matches!(refused, StoreError::InUse { found: 6, .. }), "{refused}");
    let which = "connections of engines at its own machine use it: end those engines first";
    assert!(refused.to_string().contains(which), "{refused}");
    drop(store);
    let place = "SELECT pg_relation_filenode('decisions')";
    let before: u32 = db.query_one(place, &[]).unwrap().get(0);
    let store = join(&config);
    let place = "SELECT pg_relation_filenode('decisions_before')";
    assert_eq!(before, db.query_one(place, &[]).unwrap().get::<_, u32>(0), "no row is copied");
    assert_eq!(store.decisions(id, i64::MAX, 9).unwrap(), kept);
    // An engine of version 6 that had no connection comes back, and deletes as it did.
    let old = "DELETE FROM decisions WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM decisions WHERE at_ms < 1000000000 LIMIT 2))";
    let refused = db.batch_execute(old).unwrap_err();
    let said = refused.as_db_error().expect("the server refuses it").message();
    assert!(said.contains("end this engine, which is older"), "{said}");
    assert_eq!(store.decisions(id, i64::MAX, 9).unwrap(), kept);
    // It goes on: in what there was for the rest of that day, then in partitions of its own.
    store.accept(&[batch(1, 7, 6 * day - 1, &["a"]), batch(1, 8, 7 * day, &["a"])]).unwrap();
    store.close(&at(8 * day), &mut decide).unwrap();
    let begin = |store: &dyn Store| -> Vec<i64> {
        store.decisions(id, i64::MAX, 9).unwrap().iter().map(|one| one.interval).collect()
    };
    assert_eq!(begin(&store), [7 * day, 6 * day - 1, 5 * day, day, 1]);
    join(&config).forget(8 * day, 9).unwrap();
    assert_eq!(begin(&store).len(), 5, "one in it is as young as what is kept");
    join(&config).forget(8 * day + 1, 9).unwrap();
    assert_eq!(begin(&store), [] as [i64; 0]);
    join(&config);
}

#[test]
fn an_audit_of_version_4_begins_the_chain() {
    let continues = |store: &dyn Store| {
        assert_eq!(store.check_audit(None).unwrap().found, None);
        let token = KeptToken {
            token: Token {
                id: 0,
                name: "robin".to_owned(),
                role: Role::Viewer,
                services: Vec::new(),
                prefixes: Vec::new(),
                created_ms: 70,
                revoked_ms: None,
                expires_ms: None,
                used_ms: None,
                former: None,
            },
            hash: vec![3; 32],
            former: None,
        };
        store.add_token(&token, "kim").unwrap().expect("a new name");
        let all = store.audit(i64::MAX, None, 9).unwrap();
        let all: Vec<_> = all.iter().map(|l| (l.id, l.at_ms, l.action.as_str())).collect();
        assert_eq!(all, [(3, 70, "token added"), (2, 60, "pause"), (1, 50, "pin")]);
        let check = store.check_audit(None).unwrap();
        assert_eq!((check.lines, check.first, check.end.line, check.found), (3, 1, 3, None));
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.db");
    let store = Sqlite::open(&path, &lengths()).unwrap();
    store.writer().db.execute_batch(BACK_TO_4).unwrap();
    drop(store);
    let refused =
        Sqlite::open_next_to_engine(&path).err().expect("no engine is to run").to_string();
    assert!(refused.contains("has tables of version 4") && refused.contains("first"), "{refused}");
    continues(&Sqlite::open(&path, &lengths()).unwrap());
    let Some(servers) = servers() else { return };
    let (config, store) = shared(&servers, false);
    let crate::config::Keep::Shared { postgres, .. } = &config.store else { panic!("shared") };
    let back = back_on_server(BACK_TO_4);
    postgres.config.connect(::postgres::NoTls).unwrap().batch_execute(&back).unwrap();
    // While an engine runs that knows nothing of the chain, its tables stay as they are.
    store.counts().unwrap();
    let refused = Postgres::open(postgres, &lengths()).err().expect("it is in use");
    assert!(matches!(refused, StoreError::InUse { found: 4, .. }), "{refused}");
    assert!(refused.to_string().contains("end those engines first"), "{refused}");
    drop(store);
    let refused = Postgres::open_next_to_engine(postgres).err().expect("no engine is to run");
    assert!(matches!(refused, StoreError::Older { found: 4, .. }), "{refused}");
    continues(&join(&config));
}

#[test]
fn tables_of_version_3_are_brought_up_to_date() {
    let keeps_learning = |store: &dyn Store| {
        let kept = Outcome::Accepted { late: 0, repeated: 0 };
        assert_eq!(store.counts().unwrap().waiting_reports, 1);
        assert_eq!(
            store.accept(&[batch(1, 3, 2000, &["a"])]),
            Ok(vec![kept]),
            "next to the old one"
        );
        let late = Outcome::Accepted { late: 1, repeated: 0 };
        assert_eq!(store.accept(&[batch(1, 4, 1000, &["a"])]), Ok(vec![late]));
        assert_eq!(store.close(&due(2000, 9), &mut decide), Ok((1, vec![name("a")])));
        let a = store.aggregate(&name("a")).unwrap().unwrap();
        let all = store.decisions(a.id, i64::MAX, 9).unwrap();
        let all: Vec<_> = all.iter().map(|one| (one.interval, one.reports)).collect();
        assert_eq!(all, [(2000, 2), (1000, 1)], "numbers of intervals became times");
    };
    let then = |store: &dyn Store| {
        store.accept(&[batch(1, 1, 1, &["a"]), batch(1, 2, 2, &["a"])]).unwrap();
        store.close(&due(1, 9), &mut decide).unwrap();
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.db");
    let store = Sqlite::open(&path, &lengths()).unwrap();
    then(&store);
    let back = format!("{BACK_TO_4} {BACK_TO_3}");
    store.writer().db.execute_batch(&back).unwrap();
    drop(store);
    keeps_learning(&Sqlite::open(&path, &lengths()).unwrap());
    let Some(servers) = servers() else { return };
    let (config, store) = shared(&servers, false);
    then(&store);
    let crate::config::Keep::Shared { postgres, .. } = &config.store else { panic!("shared") };
    let back = back_on_server(&back);
    postgres.config.connect(::postgres::NoTls).unwrap().batch_execute(&back).unwrap();
    drop(store);
    keeps_learning(&join(&config));
}

#[test]
fn tables_of_version_2_are_brought_up_to_date() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.db");
    let back = &format!(
        "{BACK_TO_4} {BACK_TO_3} DROP TABLE studies; DROP TABLE members; DROP TABLE cells;
         UPDATE meta SET value = '2' WHERE key = 'schema';"
    );
    let store = Sqlite::open(&path, &lengths()).unwrap();
    store.accept(&[batch(1, 1, 1, &["a"])]).unwrap();
    store.writer().db.execute_batch(back).unwrap();
    drop(store);
    let store = Sqlite::open(&path, &lengths()).unwrap();
    assert_eq!(store.begin(&study("x", vec![])), Ok(Begun::Yes));
    assert_eq!(store.counts().unwrap().waiting_reports, 1);
    let Some(servers) = servers() else { return };
    let (config, store) = shared(&servers, false);
    store.accept(&[batch(1, 1, 1, &["a"])]).unwrap();
    let crate::config::Keep::Shared { postgres, .. } = &config.store else { panic!("shared") };
    postgres
        .config
        .connect(::postgres::NoTls)
        .unwrap()
        .batch_execute(&back_on_server(back))
        .unwrap();
    drop(store);
    let store = join(&config);
    assert_eq!(store.begin(&study("x", vec![])), Ok(Begun::Yes));
    assert_eq!(store.counts().unwrap().waiting_reports, 1);
}

#[test]
fn a_file_survives_being_opened_again_and_others_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.db");
    let store = Sqlite::open(&path, &lengths()).unwrap();
    store.accept(&[batch(1, 1, 1, &["a"])]).unwrap();
    drop(store);
    let store = Sqlite::open(&path, &lengths()).unwrap();
    assert_eq!(store.accept(&[batch(1, 1, 1, &["a"])]), Ok(vec![Outcome::Again { late: 0 }]));
    store.writer().db.execute("UPDATE meta SET value = '9'", []).unwrap();
    drop(store);
    let error =
        |path: &std::path::Path| Sqlite::open(path, &lengths()).err().expect("refused").to_string();
    assert!(error(&path).contains("tables of version 9, this engine writes version 7"));
    std::fs::write(&path, "This is a letter to a friend.".repeat(40)).unwrap();
    assert!(error(&path).contains("is damaged or no store of the engine"), "{}", error(&path));
    let nowhere = folder.path().join("no/such/engine.db");
    assert!(error(&nowhere).starts_with("cannot open "), "{}", error(&nowhere));
}

#[test]
fn a_damaged_page_is_named_as_such() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.db");
    let prefixes: Vec<String> = (0..2000).map(|i| format!("10.0.{i}.0/24")).collect();
    let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
    Sqlite::open(&path, &lengths()).unwrap().accept(&[batch(1, 1, 1, &prefixes)]).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8192..].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let asked = Sqlite::open(&path, &lengths())
        .and_then(|store| store.accept(&[batch(1, 2, 1, &prefixes)]));
    assert!(matches!(asked, Err(StoreError::Damaged { .. })), "{asked:?}");
}

#[test]
fn a_full_disk_loses_nothing_and_is_named_as_such() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Sqlite::open(&folder.path().join("engine.db"), &lengths()).unwrap();
    store.accept(&[batch(1, 1, 1, &["a"])]).unwrap();
    store.writer().db.pragma_update(None, "max_page_count", 40).unwrap();
    let prefixes: Vec<String> = (0..5000).map(|i| format!("10.0.{i}.0/24")).collect();
    let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
    let full = store.accept(&[batch(1, 2, 1, &["b"]), batch(1, 3, 1, &prefixes)]);
    assert!(matches!(full, Err(StoreError::Full { .. })), "{full:?}");
    assert_eq!(store.counts().unwrap().waiting_reports, 1, "nothing of it was kept");
    store.writer().db.pragma_update(None, "max_page_count", 1_000_000).unwrap();
    assert_eq!(
        store.accept(&[batch(1, 2, 1, &["b"])]),
        Ok(vec![Outcome::Accepted { late: 0, repeated: 0 }])
    );
    assert_eq!(store.counts().unwrap().waiting_reports, 2);
}

#[test]
fn a_file_of_version_1_is_brought_up_to_date() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(include_str!("../version-1.sql")).unwrap();
    drop(old);
    let store = Sqlite::open(&path, &lengths()).unwrap();
    let a = store.aggregate(&name("a")).unwrap().unwrap();
    assert_eq!(store.learnt(a.id), Ok(Some("{\"steps\":3,\"centre\":[0.25,0.5]}".to_owned())));
    let all = store.decisions(a.id, i64::MAX, 9).unwrap();
    let seen: Vec<_> = all.iter().map(|d| (d.interval, d.version, d.reward)).collect();
    assert_eq!(seen, [(12_000, 2, Some(0.5)), (10_000, 1, None)]);
    assert_eq!(all[0].configuration, "{\"knobs\":{\"gamma\":900}}");
    assert_eq!(all[0].detail, "{\"sentence\":\"Because of 7.\"}");
    // It learns on, and the chain goes on.
    store.accept(&[batch(1, 1, 13_000, &["a"])]).unwrap();
    assert_eq!(store.close(&due(13_000, 9), &mut still), Ok((1, vec![])));
    let all = store.decisions(a.id, i64::MAX, 9).unwrap();
    assert_eq!(all.iter().map(|d| d.interval).collect::<Vec<_>>(), [13_000, 12_000, 10_000]);
    drop(store);
    assert!(Sqlite::open(&path, &lengths()).is_ok(), "and stays so");
}

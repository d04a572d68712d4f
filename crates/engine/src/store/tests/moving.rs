//! Copies of a file, and its way into PostgreSQL.

use super::*;

/// Decides with documents long enough for a shape.
fn decide_at_length(open: &Open) -> Result<Closed, String> {
    let knobs = "{\"algorithm\":\"vivace\",\"knobs\":{\"gamma\":900,\"beta\":11.35}}";
    let (version, _) = decide(open)?.configuration.expect("it changes");
    Ok(Closed {
        configuration: Some((version, knobs.to_owned())),
        detail: format!("{{\"reports\":{},\"before\":{knobs}}}", open.reports.len()),
        ..decide(open)?
    })
}

/// A file in which every table has rows.
fn full(path: &std::path::Path) -> Sqlite {
    let store = Sqlite::open(path, &lengths()).unwrap();
    store.add_token(&edge_token(), "root").unwrap().expect("a new name");
    assert_eq!(store.rotate_token(&rotation("edge-1", 100), "kim"), Ok(true));
    store.accept(&[batch(1, 1, 10, &["a", "b\u{e9}", "c"])]).unwrap();
    store.close(&due(10, 9), &mut decide_at_length).unwrap();
    store.accept(&[batch(1, 2, 11, &["a", "b\u{e9}"]), batch(2, 5, 11, &["a"])]).unwrap();
    let id = store.aggregate(&name("a")).unwrap().expect("it is known").id;
    assert_eq!(store.begin(&study("one", vec![(id, 1, Some(2.5))])), Ok(Begun::Yes));
    store.close(&due(10, 9), &mut decide_at_length).unwrap();
    let cell = "INSERT INTO cells VALUES (1, ?1, 3, 0, '{}')";
    store.writer().db.execute(cell, [id]).unwrap();
    store
}

/// What a store has, as far as its callers see.
fn seen(store: &dyn Store) -> impl PartialEq + std::fmt::Debug + use<> {
    let row = |prefix: &str| store.aggregate(&name(prefix)).unwrap().expect("it is known");
    let rows = ["a", "b\u{e9}", "c"].map(row);
    let decided = rows.each_ref().map(|row| store.decisions(row.id, i64::MAX, 99).unwrap());
    let tokens: Vec<_> = store.tokens().unwrap();
    let cells = (store.members(1).unwrap(), store.cells(1).unwrap());
    let active = store.active_studies("tv").unwrap();
    let check = store.check_audit(None).unwrap();
    let counts = store.counts().unwrap();
    format!("{rows:?} {decided:?} {tokens:?} {cells:?} {active:?} {check:?} {counts:?}")
}

#[test]
fn everything_in_a_file_moves_into_postgresql_and_goes_on_there() {
    let Some(servers) = servers() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.db");
    let store = full(&path);
    let before = seen(&store);
    let text = format!("services = \"s\"\n{}", servers.configuration(false));
    let config = folder.path().join("engine.toml");
    std::fs::write(&config, text).expect("a file");
    let config = crate::config::Config::read(&config).expect("a configuration");
    let crate::config::Keep::Shared { postgres, .. } = &config.store else { panic!("shared") };
    let server = Postgres::open(postgres, &lengths()).unwrap();

    // While somebody else has the file, what he writes would be lost.
    let other = Sqlite::open(&path, &lengths()).unwrap();
    let refused = move_to(&store, &server).unwrap_err().to_string();
    assert!(refused.contains("an engine or another program has it open"), "{refused}");
    drop((store, other));
    let store = Sqlite::open(&path, &lengths()).unwrap();

    let moved = move_to(&store, &server).unwrap();
    assert!(moved.iter().all(|&(_, rows)| rows > 0), "{moved:?}");
    assert_eq!(seen(&server), before);
    let full = move_to(&store, &server).unwrap_err().to_string();
    assert!(full.contains("name an empty database"), "{full}");

    // Batches are known, aggregates keep their numbers, and new ones get new numbers.
    assert_eq!(
        server.accept(&[batch(1, 2, 11, &["a", "b\u{e9}"])]),
        Ok(vec![Outcome::Again { late: 0 }])
    );
    server.accept(&[batch(1, 3, 11, &["d"])]).unwrap();
    assert_eq!(server.close(&due(11, 9), &mut decide).unwrap().0, 3);
    let decided = |prefix: &str| {
        let row = server.aggregate(&name(prefix)).unwrap().expect("it is known");
        server.decisions(row.id, i64::MAX, 9).unwrap().iter().map(|d| d.reports).collect::<Vec<_>>()
    };
    assert_eq!((decided("a"), decided("d")), (vec![2, 1], vec![1]));
    let token = KeptToken { hash: vec![9; 32], ..edge_token() };
    let token = KeptToken { token: Token { name: "edge-2".to_owned(), ..token.token }, ..token };
    assert_eq!(server.add_token(&token, "root"), Ok(Some(2)));
    assert_eq!(server.check_audit(None).unwrap().found, None);
}

#[test]
fn a_copy_of_a_file_in_use_is_a_store_of_that_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.db");
    let store = full(&path);
    let before = seen(&store);
    let copy = folder.path().join("copy.db");
    back_up(&store, &copy).unwrap();
    store.accept(&[batch(1, 4, 12, &["a"])]).unwrap();
    assert_eq!(seen(&Sqlite::open(&copy, &lengths()).unwrap()), before);
    let refused = back_up(&store, &copy).unwrap_err().to_string();
    assert!(refused.contains("name another one"), "{refused}");
    let nowhere = back_up(&store, &folder.path().join("no/copy.db")).unwrap_err().to_string();
    assert!(nowhere.contains("write a copy to") && nowhere.contains("no/copy.db"), "{nowhere}");
}

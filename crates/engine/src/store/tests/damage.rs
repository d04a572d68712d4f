//! Rows that are nothing that the engine writes.

use super::*;

/// What is done to one row behind the back of its store.
pub(super) type Damage<'a> = dyn Fn(&str) + 'a;

pub(super) fn in_a_file(test: impl Fn(&dyn Store, &Damage<'_>)) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Sqlite::open(&folder.path().join("engine.db"), &lengths()).unwrap();
    test(&store, &|sql| assert_eq!(store.writer().db.execute(sql, []), Ok(1)));
}

pub(super) fn on_a_server(test: impl Fn(&dyn Store, &Damage<'_>)) {
    let Some(servers) = servers() else { return };
    let (config, store) = shared(&servers, false);
    let crate::config::Keep::Shared { postgres, .. } = &config.store else { panic!("shared") };
    test(&store, &|sql| {
        let mut client = postgres.config.connect(::postgres::NoTls).unwrap();
        assert_eq!(client.execute(sql, &[]).unwrap(), 1);
    });
}

/// The prefixes of a page; of one that cannot be read with a question mark.
fn page(store: &dyn Store, search: &Search) -> Vec<String> {
    let of = |one: Listed| match one {
        Ok(row) => row.name.prefix,
        Err(one) => format!("{}?", one.name.prefix),
    };
    store.aggregates(search).unwrap().into_iter().map(of).collect()
}

fn first(limit: usize) -> Search {
    Search { limit, ..Search::default() }
}

#[test]
fn a_row_that_cannot_be_read_keeps_no_other_off_a_list() {
    let test = |store: &dyn Store, damage: &Damage<'_>| {
        store.accept(&[batch(1, 1, 1, &["a", "b", "c", "d", "e"])]).unwrap();
        while store.close(&due(1, 9), &mut decide).unwrap().0 > 0 {}
        damage("UPDATE aggregates SET hold = 'resting' WHERE prefix = 'b'");
        damage("UPDATE aggregates SET hold = 'resting' WHERE prefix = 'c'");
        damage("UPDATE aggregates SET hold = 'resting' WHERE prefix = 'e'");
        assert_eq!(page(store, &first(9)), ["a", "b?", "c?", "d", "e?"]);
        // They take no place of those that can be read.
        assert_eq!(page(store, &first(1)), ["a"]);
        assert_eq!(page(store, &first(2)), ["a", "b?", "c?", "d"]);
        let after = Some(name("a"));
        assert_eq!(page(store, &Search { after, ..first(1) }), ["b?", "c?", "d"]);
        let text = "tv c".to_owned();
        assert_eq!(page(store, &Search { text, ..first(1) }), ["c?"]);
        let hold = Some(Hold::Learning);
        assert_eq!(page(store, &Search { hold, ..first(9) }), ["a", "d"]);
        let all = store.aggregates(&first(9)).unwrap();
        let unreadable: Vec<_> = all.into_iter().filter_map(Result::err).collect();
        let id = store.number(&name("b")).unwrap().unwrap();
        assert_eq!(unreadable[0], Unreadable { id, name: name("b"), is_named: true });
        let damaged = ["b", "c", "e"].map(name);
        assert_eq!(store.reset(&damaged, "kim", "damaged", 6000), Ok(true));
        assert_eq!(page(store, &first(9)), ["a", "b", "c", "d", "e"]);
    };
    in_a_file(test);
    on_a_server(test);
}

/// PostgreSQL keeps the types of its columns.
#[test]
fn a_name_or_a_number_that_is_none_holds_up_no_other_aggregate_of_a_file() {
    in_a_file(|store, damage| {
        store.accept(&[batch(1, 1, 1, &["a", "b", "c", "d"])]).unwrap();
        while store.close(&due(1, 9), &mut decide).unwrap().0 > 0 {}
        store.accept(&[batch(1, 2, 2, &["a", "b", "c", "d"])]).unwrap();
        let id = store.number(&name("b")).unwrap().unwrap();
        damage("UPDATE aggregates SET prefix = CAST(x'62ff' AS TEXT) WHERE prefix = 'b'");
        damage("UPDATE aggregates SET decisions = 'many' WHERE prefix = 'c'");
        assert_eq!(page(store, &first(9)), ["a", "b\u{fffd}?", "c?", "d"]);
        let all = store.aggregates(&first(9)).unwrap();
        let nameless = all.into_iter().find_map(Result::err).unwrap();
        assert_eq!((nameless.id, nameless.is_named), (id, false));
        // The others are decided on.
        assert_eq!(store.close(&due(2, 9), &mut decide).unwrap().0, 2);
        let damaged: Vec<String> = store.damaged().into_iter().map(|one| one.prefix).collect();
        assert_eq!(damaged, ["b\u{fffd}", "c"]);
    });
}

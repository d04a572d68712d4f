//! Decisions in PostgreSQL by day, and what becomes of old ones.

use super::*;
use crate::store::postgres::DAY_MS;

/// An own connection to the database of a configuration.
fn direct(config: &crate::config::Config) -> ::postgres::Client {
    let crate::config::Keep::Shared { postgres, .. } = &config.store else { panic!("shared") };
    postgres.config.connect(::postgres::NoTls).expect("it runs")
}

/// The partitions that there are, the oldest first.
fn partitions(db: &mut ::postgres::Client) -> Vec<String> {
    let all = "SELECT inhrelid::regclass::text FROM pg_inherits
        WHERE inhparent = 'decisions'::regclass ORDER BY inhrelid";
    let mut all: Vec<String> = db.query(all, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    all.sort_by_key(|name| name.trim_start_matches("decisions_").parse::<i64>().unwrap_or(0));
    all
}

/// Reports about an aggregate in intervals that begin at these times.
fn report(store: &dyn Store, sequence: i64, intervals: &[i64], prefix: &str) {
    for (at, interval) in intervals.iter().enumerate() {
        let sent = batch(1, sequence + at as i64, *interval, &[prefix]);
        assert_eq!(store.accept(&[sent]), Ok(vec![Outcome::Accepted { late: 0, repeated: 0 }]));
    }
}

fn close(store: &dyn Store, through: i64, now_ms: i64) {
    while store.close(&Due { now_ms, ..due(through, 9) }, &mut decide).unwrap().0 > 0 {}
}

/// When the decisions' intervals begin, in days.
fn days(store: &dyn Store, prefix: &str) -> Vec<i64> {
    let row = store.aggregate(&name(prefix)).unwrap().expect("it is known");
    let all = store.decisions(row.id, i64::MAX, 99).unwrap();
    all.iter().map(|one| one.interval / DAY_MS).collect()
}

#[test]
fn old_days_go_as_a_whole_and_by_one_statement() {
    let Some(servers) = servers() else { return };
    let (config, store) = shared(&servers, false);
    let mut db = direct(&config);
    for day in 100..105 {
        let begins = day * DAY_MS;
        report(&store, day * 10, &[begins, begins + 1000, begins + DAY_MS - 1], "a");
        close(&store, begins + DAY_MS - 1, begins + DAY_MS);
    }
    // One that is closed late is as young as what is closed with it.
    report(&store, 2000, &[101 * DAY_MS], "b");
    close(&store, 104 * DAY_MS, 105 * DAY_MS);
    let named = |days: std::ops::Range<i64>| -> Vec<String> {
        days.map(|day| format!("decisions_{day}")).collect()
    };
    assert_eq!(partitions(&mut db), named(100..107), "with what is made ahead");
    assert_eq!(days(&store, "a").len(), 15);

    db.batch_execute(
        "CREATE TABLE said (tag TEXT);
         CREATE FUNCTION say() RETURNS event_trigger LANGUAGE plpgsql AS $$
             BEGIN INSERT INTO said SELECT object_identity FROM pg_event_trigger_dropped_objects()
             WHERE object_type = 'table'; END $$;
         CREATE EVENT TRIGGER say ON sql_drop EXECUTE FUNCTION say();
         CREATE FUNCTION no_rows() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'rows are deleted one by one'; END $$;
         CREATE TRIGGER no_rows BEFORE DELETE ON decisions FOR EACH ROW EXECUTE FUNCTION no_rows()",
    )
    .unwrap();
    // Day 100 was over at its end, and the last decision about it was made then.
    assert_eq!(store.forget(101 * DAY_MS, 9), Ok(0));
    assert_eq!(partitions(&mut db), named(100..107), "it is as old as what is kept, and no older");
    let mut dump = direct(&config);
    dump.batch_execute("BEGIN; SELECT count(*) FROM decisions").unwrap();
    assert_eq!(join(&config).forget(104 * DAY_MS + 1, 9), Ok(0), "a copy is made: there is time");
    dump.batch_execute("COMMIT").unwrap();
    assert_eq!(partitions(&mut db), named(100..107));
    let later = join(&config);
    assert_eq!(later.forget(104 * DAY_MS + 1, 9), Ok(0));
    let said = db.query("SELECT tag FROM said ORDER BY tag", &[]).unwrap();
    let said: Vec<String> = said.iter().map(|row| row.get(0)).collect();
    assert_eq!(said, ["public.decisions_100", "public.decisions_102", "public.decisions_103"]);
    assert_eq!(partitions(&mut db)[..2], ["decisions_101", "decisions_104"]);
    assert_eq!(days(&store, "a"), [104, 104, 104], "the chain ends where it was forgotten");
    assert_eq!(days(&store, "b"), [101]);
    assert_eq!(store.counts().unwrap().decisions, 16, "how many there were is known");

    // The engine that dropped nothing finds its partition gone, and makes it anew.
    report(&store, 3000, &[102 * DAY_MS], "c");
    let at = Due { now_ms: 105 * DAY_MS, ..due(102 * DAY_MS, 9) };
    assert!(store.close(&at, &mut decide).is_err(), "another engine dropped it");
    close(&store, 102 * DAY_MS, 105 * DAY_MS);
    assert_eq!(days(&store, "c"), [102]);
}

#[test]
fn two_engines_that_make_and_drop_days_at_once_lose_no_decision() {
    let Some(servers) = servers() else { return };
    let (config, one) = shared(&servers, false);
    let other = join(&config);
    let last = 330;
    std::thread::scope(|scope| {
        for (token, store) in [(1, &one), (2, &other)] {
            let config = &config;
            scope.spawn(move || {
                for day in 300..=last {
                    let prefix = format!("10.0.{token}.0/24");
                    let sent = batch(token, day, day * DAY_MS, &[&prefix]);
                    store.accept(&[sent]).expect("it is kept");
                    close(store, day * DAY_MS, (day + 1) * DAY_MS);
                    // A new one looks at once.
                    join(config).forget((day - 3) * DAY_MS, 9).expect("no engine is in the way");
                }
            });
        }
    });
    for token in [1, 2] {
        let kept = days(&one, &format!("10.0.{token}.0/24"));
        assert_eq!(kept[..3], [last, last - 1, last - 2], "{kept:?}");
    }
    assert_eq!(one.counts().unwrap().decisions, 2 * (last - 299));
    // One that found the other at it left the rest for later. The last day has what either decided.
    join(&config).forget((last + 2) * DAY_MS, 9).expect("no engine is in the way");
    let left = partitions(&mut direct(&config));
    assert!(left.len() <= 2, "{left:?}");
}

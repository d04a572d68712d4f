//! What webhooks need of a store: lines after one, turns of engines, and lines about fallbacks.

use super::*;

fn line(subject: &str) -> Line {
    Line {
        at_ms: 5,
        who: "kim".to_owned(),
        action: "pin",
        subject: subject.to_owned(),
        detail: String::new(),
    }
}

fn turn(engine: &str, sent: Option<i64>, (now_ms, until_ms): (i64, i64)) -> Turn<'_> {
    Turn { hook: "chat", engine, sent, now_ms, until_ms }
}

#[test]
fn one_engine_at_a_time_has_the_turn_and_goes_on_where_the_last_one_was() {
    on_every_store(|store| {
        store.write_down(&[line("a"), line("b")]).expect("it writes");
        let take =
            |engine, sent, times| store.take_turn(&turn(engine, sent, times)).expect("it answers");
        // What was before is nothing new.
        assert_eq!(take("one", None, (0, 30)), Some(2));
        store.write_down(&[line("c"), line("d"), line("e")]).expect("it writes");
        assert_eq!(take("two", None, (29, 60)), None);
        assert_eq!(take("one", Some(3), (29, 60)), Some(3));
        assert_eq!(take("two", None, (59, 90)), None);
        // One that is gone has it until then.
        assert_eq!(take("two", None, (60, 90)), Some(3));
        assert_eq!(take("one", Some(5), (61, 90)), None, "it was too slow");
        assert_eq!(take("two", Some(4), (61, 0)), Some(4), "it gives its turn up");
        assert_eq!(take("one", None, (62, 90)), Some(4));
        let other = Turn { hook: "pager", ..turn("two", None, (62, 90)) };
        assert_eq!(store.take_turn(&other), Ok(Some(5)), "each webhook has its own");
        let after = store.audit_after(3, 10).expect("it answers");
        let subjects: Vec<&str> = after.iter().map(|one| one.line.subject.as_str()).collect();
        assert_eq!(subjects, ["d", "e"]);
        assert_eq!(store.audit_after(1, 2).expect("it answers").len(), 2);
    });
}

#[test]
fn what_falls_back_is_one_line_of_the_transaction_that_closes() {
    on_every_store(|store| {
        let prefixes = ["a", "b", "c"];
        store.accept(&[batch(1, 1, 10, &prefixes)]).expect("it keeps them");
        let mut fall = |open: &Open| {
            let alarm = (open.name.prefix != "b").then_some("guard");
            let shown = vec![Shown { alarm, broken: 0, reward: None }];
            still(open).map(|closed| Closed { shown, ..closed })
        };
        store.close(&due(10, 10), &mut fall).expect("it closes");
        let lines = store.audit_after(0, 100).expect("it answers");
        let mut named = Vec::new();
        for Chained { line, .. } in &lines {
            assert_eq!((line.action.as_str(), line.subject.as_str()), ("fell back", "tv"));
            assert_eq!((line.who.as_str(), line.at_ms), (ITSELF, 5000));
            let (_, all) = line.detail.split_once(" to the safe configuration: ").expect("it says");
            named.extend(all.split(", ").map(str::to_owned));
        }
        named.sort();
        // PostgreSQL closes parts of the aggregates one after the other.
        assert_eq!(named, ["a (guard)", "c (guard)"]);
        store.accept(&[batch(1, 2, 11, &prefixes)]).expect("it keeps them");
        store.close(&due(11, 10), &mut still).expect("it closes");
        assert_eq!(store.audit_after(0, 100).map(|all| all.len()), Ok(lines.len()), "nobody did");
    });
}

#[test]
fn a_line_about_many_fallbacks_stays_short() {
    let all: Vec<(Name, &str)> =
        (0..200).map(|i| (name(&format!("10.0.{i}.0/24")), "reward")).collect();
    let line = Line::fell_back("tv", &all, 7).expect("they did");
    assert!(line.detail.starts_with("200 to the safe configuration: 10.0.0.0/24 (reward), "));
    assert!(line.detail.ends_with(", and 180 more") && line.detail.len() < 1000, "{}", line.detail);
    assert_eq!(Line::fell_back("tv", &[], 7), None);
}

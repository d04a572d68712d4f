//! Connections that suffer, and those that nothing steers any more.

use super::learnt::WithPolicy;
use super::*;

#[test]
fn a_connection_that_suffers_goes_back_rests_and_is_steered_again() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 3.0);
    web.borrow_mut().shallow = true;
    let now = pass(&mut core, &fake, now, 6.0);
    assert_eq!(standing(&core, 1), Standing::Resting);
    assert_eq!((web.borrow().knobs["delta"], web.borrow().knobs["pacing_gain"]), (0.5, 2.0));
    assert!(
        told(core.take_notes())
            .iter()
            .any(|note| note.contains("back to the fallback, after losses"))
    );
    let now = pass(&mut core, &fake, now, 5.0);
    assert_eq!(standing(&core, 1), Standing::Resting);
    web.borrow_mut().shallow = false;
    pass(&mut core, &fake, now, 7.0);
    assert_eq!(standing(&core, 1), Standing::Steered);
    assert!(web.borrow().knobs["delta"] < 0.5);
    assert_eq!(core.tallies()[&("web".to_owned(), Arm::Treated)].fallbacks, 1);
}

/// Whatever steers it: fixed knobs and turns had no guard.
#[test]
fn every_steering_is_guarded() {
    let cases = [
        ("knobs = { delta = 0.04 }", Standing::Set),
        ("steer = \"mortise\"\nqoe = \"download\"\nfactors = { R = 8 }", Standing::Steered),
        ("turns = [\"copa\", \"cubic\"]\nevery = \"20s\"", Standing::Turning),
    ];
    for (says, stands) in cases {
        let fake = Fake::default();
        let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
        web.borrow_mut().shallow = true;
        let rules = format!("[safety]\nafter = \"3s\"\nrest = \"10s\"\n[[rule]]\n{says}\n");
        let mut core = Core::new(fake.clone(), config(&rules), Time::ZERO);
        assert_eq!(standing(&core, 1), stands, "{says}");
        let mut now = Time::ZERO;
        while standing(&core, 1) != Standing::Resting {
            now = pass(&mut core, &fake, now, 1.0);
            assert!(now < Time::from_secs(40), "{says}: it loses 7.7 % for ever");
        }
        let now = pass(&mut core, &fake, now, 6.0);
        let safe = |pipe: &Pipe| (pipe.identity.algorithm, pipe.knobs["delta"], pipe.loss());
        assert_eq!(safe(&web.borrow()), ("copa", 0.5, 0.0), "{says}");
        assert_eq!(standing(&core, 1), Standing::Resting, "{says}");
        web.borrow_mut().shallow = false;
        pass(&mut core, &fake, now, 8.0);
        assert_eq!(standing(&core, 1), stands, "{says}: after the rest");
    }
}

#[test]
fn a_learnt_selection_is_guarded() {
    let candidates: &[(&str, f32, &[f32])] = &[("cubic", 2.0, &[0.0]), ("copa", 1.0, &[0.0])];
    let file =
        model::Policy { features: &["rtt_min"], candidates, range: (0.0, 1.0), period_ms: 12_000 };
    let with = WithPolicy::new(Some(&file.file()));
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    web.borrow_mut().shallow = true;
    let mut core = Core::new(fake.clone(), with.config("copa"), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 5.0);
    assert_eq!(web.borrow().identity.algorithm, "cubic");
    pass(&mut core, &fake, now, 5.0);
    assert_eq!((standing(&core, 1), web.borrow().identity.algorithm), (Standing::Resting, "copa"));
}

/// 8 % are lost by every sender: that costs one rest of four seconds, and no more.
#[test]
fn losses_that_are_nobodys_doing_are_found_out_and_forgiven() {
    let fake = Fake::default();
    let (fixed, _) = fake.open("10.0.0.1:8080", "192.0.2.1:5000");
    fixed.borrow_mut().loss = 0.08;
    let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 4.5);
    assert_eq!((standing(&core, 1), fixed.borrow().knobs["delta"]), (Standing::Resting, 0.5));
    let mut now = pass(&mut core, &fake, now, 5.0);
    for _ in 0..60 {
        assert_eq!((standing(&core, 1), fixed.borrow().knobs["delta"]), (Standing::Set, 0.2));
        now = pass(&mut core, &fake, now, 1.0);
    }
    assert_eq!(core.tallies()[&("fixed".to_owned(), Arm::Treated)].fallbacks, 1);
    assert!(told(core.take_notes()).iter().any(|note| note.contains("as much without steering")));
}

/// In mode `advise`, when its rule goes, and when the agent stops.
#[test]
fn what_is_not_steered_any_more_gets_back_what_it_had() {
    let turns =
        format!("{RULES}\n[[rule]]\nport = 444\nturns = [\"copa\", \"cubic\"]\nevery = \"2s\"\n");
    for how in ["advise", "no rule", "stop"] {
        let fake = Fake::default();
        let ports = [443, 8080, 444];
        let pipes = ports.map(|port| fake.open(&format!("10.0.0.1:{port}"), "192.0.2.1:5000").0);
        // Somebody had turned it before.
        pipes[0].borrow_mut().knobs.insert("loss_beta".to_owned(), 0.9);
        let before = pipes.each_ref().map(|pipe| pipe.borrow().knobs.clone());
        let mut core = Core::new(fake.clone(), config(&turns), Time::ZERO);
        let now = pass(&mut core, &fake, Time::ZERO, 3.0);
        assert_eq!(pipes[2].borrow().identity.algorithm, "cubic");
        assert!(pipes[0].borrow().knobs != before[0] && pipes[1].borrow().knobs != before[1]);
        match how {
            "advise" => core.reload(config(&format!("mode = \"advise\"\n{turns}")), now),
            "no rule" => core.reload(config(""), now),
            _ => core.put_back(now),
        }
        for (pipe, before) in pipes.iter().zip(&before) {
            let pipe = pipe.borrow();
            assert_eq!((pipe.identity.algorithm, &pipe.knobs), ("copa", before), "{how}");
        }
        let why = core.why(":8080", now).unwrap().to_string();
        assert!(why.contains("delta 0.2000 -> 0.5000: its steering ended"), "{why}");
    }
}

/// What ran before takes over in a while when a rule goes; until then its successor waits.
#[test]
fn steering_begins_when_what_the_rule_is_about_takes_over() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    web.borrow_mut().identity.algorithm = "cubic";
    let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 1.0);
    assert_eq!((standing(&core, 1), web.borrow().knobs["delta"]), (Standing::Measured, 0.5));
    web.borrow_mut().identity.algorithm = "copa";
    pass(&mut core, &fake, now, 2.0);
    assert_eq!(standing(&core, 1), Standing::Steered);
    assert!(web.borrow().knobs["delta"] < 0.5, "{:?}", web.borrow().knobs);
}

#[test]
fn what_somebody_else_turned_is_not_put_back() {
    let fake = Fake::default();
    let (fixed, _) = fake.open("10.0.0.1:8080", "192.0.2.1:5000");
    let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
    fixed.borrow_mut().knobs.insert("delta".to_owned(), 0.31);
    core.put_back(Time::ZERO);
    assert_eq!(fixed.borrow().knobs["delta"], 0.31);
}

//! Rules whose algorithm a learnt policy chooses.

use super::*;

/// Where a policy chooses every second, in a folder with its file.
pub(super) struct WithPolicy {
    folder: tempfile::TempDir,
}

impl WithPolicy {
    pub(super) fn new(file: Option<&[u8]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if let Some(file) = file {
            std::fs::write(folder.path().join("policy.safetensors"), file).unwrap();
        }
        Self { folder }
    }

    pub(super) fn config(&self, safe: &str) -> Config {
        let text = r#"
            [[rule]]
            name = "web"
            port = 443
            turns = ["copa", "cubic"]
            every = "1s"
            select = "floo"
            model = "policy.safetensors"
        "#;
        let text = format!("{text}safe = {safe:?}\n");
        Config::parse(&self.folder.path().join("agent.toml"), &text).unwrap()
    }
}

/// It would rather have BBR than Copa than CUBIC, where the round-trip time is within `range`.
fn policy(range: (f32, f32)) -> Vec<u8> {
    let candidates: &[(&str, f32, &[f32])] =
        &[("cubic", 0.0, &[0.0]), ("bbr", 2.0, &[0.0]), ("copa", 1.0, &[0.0])];
    model::Policy { features: &["rtt_min"], candidates, range, period_ms: 12_000 }.file()
}

#[test]
fn a_learnt_policy_chooses_among_what_the_kernel_runs() {
    let with = WithPolicy::new(Some(&policy((0.0, 1.0))));
    let config = with.config("cubic");
    assert_eq!(config.troubles(), [""; 0]);
    let remarks = config.remarks();
    assert!(remarks[0].ends_with("policy.safetensors never chooses bbr here"), "{remarks:?}");
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    web.borrow_mut().identity.algorithm = "cubic";
    let mut core = Core::new(fake.clone(), config, Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 5.0);
    assert_eq!(standing(&core, 1), Standing::Selecting);
    let switches: Vec<_> = web.borrow().switches.iter().map(|(to, ..)| *to).collect();
    assert_eq!(switches, [named("copa")]);
    let text = core.why("1", now).unwrap().to_string();
    assert!(text.contains("cubic -> copa: the learnt policy prefers it"), "{text}");
    assert_eq!(core.tallies()[&("web".to_owned(), Arm::Treated)].unanswered, 0);
    assert_eq!(told(core.take_notes()), [""; 0]);
}

#[test]
fn the_next_connection_begins_with_what_suited_its_destination() {
    let with = WithPolicy::new(Some(&policy((0.0, 1.0))));
    let fake = Fake::default();
    let mut core = Core::new(fake.clone(), with.config("cubic"), Time::ZERO);
    let open = |core: &mut Core<Fake>, remote: &str, now: Time| {
        let (pipe, event) = fake.open("10.0.0.1:443", remote);
        pipe.borrow_mut().identity.algorithm = "cubic";
        pipe.borrow_mut().identity.opened = now;
        core.on_event(&event, now);
        pipe
    };
    let first = open(&mut core, "192.0.2.1:5000", Time::ZERO);
    assert_eq!(first.borrow().switches, [], "nothing is known yet");
    let now = pass(&mut core, &fake, Time::ZERO, 5.0);
    assert_eq!(first.borrow().identity.algorithm, "copa");

    let begins = |core: &mut Core<Fake>, remote: &str, now: Time| {
        let next = open(core, remote, now);
        let algorithm = next.borrow().identity.algorithm;
        next.borrow_mut().open = false;
        algorithm
    };
    assert_eq!(begins(&mut core, "192.0.2.1:5001", now), "copa");
    assert_eq!(begins(&mut core, "192.0.2.2:5001", now), "cubic", "another destination");
    let why = core.why("2", now).unwrap().to_string();
    assert!(why.contains("cubic -> copa: it suited an earlier connection"), "{why}");
    let late = now + trimtab_steer::SUITED_LIFETIME;
    assert_eq!(begins(&mut core, "192.0.2.1:5002", late), "cubic", "that was long ago");
}

/// The fallback runs, whatever is wrong; that is said once, and counted.
#[test]
fn without_an_answer_of_the_policy_what_is_safe_runs() {
    let good = policy((0.0, 1.0));
    let mut damaged = good.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let (of, to) = (br#""version":"1""#, br#""version":"9""#);
    let at = good.windows(of.len()).position(|w| w == of).unwrap();
    let mut other = good.clone();
    other[at..at + to.len()].copy_from_slice(to);
    let one: &[(&str, f32, &[f32])] = &[("bbr", 0.0, &[0.0]), ("copa", 1.0, &[0.0])];
    let foreign = model::Policy {
        features: &["rtt_min"],
        candidates: one,
        range: (0.0, 1.0),
        period_ms: 12_000,
    };
    let unknown = policy((5.0, 6.0));
    for (file, trouble, why) in [
        (None, "No such file", "there is no model: its file cannot be read"),
        (Some(damaged), "is damaged", "there is no model: its file is damaged, or no model"),
        (Some(other), "train it again", "there is no model: its file is of another version"),
        (
            Some(foreign.file()),
            "it chooses among bbr, copa, of which fewer than two can run here",
            "there is no model: fewer than two of its algorithms can run here",
        ),
        (Some(unknown), "", "rtt_min is outside the range in which the policy learnt"),
    ] {
        let with = WithPolicy::new(file.as_deref());
        let config = with.config("cubic");
        let troubles = config.troubles().concat();
        assert_eq!(troubles.is_empty(), trouble.is_empty(), "{troubles}");
        if !trouble.is_empty() {
            assert!(troubles.starts_with("rule web: the model ") && troubles.contains(trouble));
            assert!(troubles.ends_with("; cubic runs in its place"), "{troubles}");
        }
        let fake = Fake::default();
        let pipes = [1, 2].map(|n| fake.open("10.0.0.1:443", &format!("192.0.2.{n}:5000")).0);
        let mut core = Core::new(fake.clone(), config, Time::ZERO);
        let now = pass(&mut core, &fake, Time::ZERO, 5.5);
        for pipe in pipes {
            let switches: Vec<_> = pipe.borrow().switches.iter().map(|(to, ..)| *to).collect();
            assert_eq!(switches, [named("cubic")], "{why}");
        }
        let text = core.why("1", now).unwrap().to_string();
        let line =
            format!("copa -> cubic: the learnt policy declined, and this is the fallback: {why}");
        assert!(text.contains(&line), "{text}");
        let unanswered = core.tallies()[&("web".to_owned(), Arm::Treated)].unanswered;
        assert!((8..=10).contains(&unanswered), "every second of two connections: {unanswered}");
        // What is known when the configuration is read is reported then.
        let notes = told(core.take_notes());
        assert_eq!(notes.len(), usize::from(trouble.is_empty()), "{notes:?}");
        assert!(notes.iter().all(|note| note.contains(why)), "{notes:?}");
    }
}

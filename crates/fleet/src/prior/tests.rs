use super::*;

/// A service with CUBIC installed, and BBR and a preset of Copa next to it.
fn tv(more: &str) -> Result<Service, ServiceError> {
    Service::parse(&format!(
        "name = \"tv\"\nincumbent = \"cubic\"\nothers = [\"bbr\", \"copa:mvfst\"]\n\
         reward = \"mean(throughput)\"\n[knobs]\ngamma = {{ min = 1, max = 30, scale = \"log\" }}\n\
         beta = {{ min = 5, max = 20 }}\n[safe]\ngamma = 3\n{more}"
    ))
}

fn rows(text: &str) -> Vec<PriorRow> {
    PriorRow::parse(text).unwrap()
}

const WRITTEN: &str = "\
[[prior]]
run = \"copa:mvfst\"
advantage = 1.5
trials = 30.0

[[prior]]
run = \"vivace:gamma=3,beta=11\"
advantage = -0.25
trials = 10.0
";

/// What is written is what is read, up to the grid on which findings lie.
#[test]
fn rows_go_through_a_file() {
    let service = tv(WRITTEN).unwrap();
    let back = PriorRow::all(&service, service.prior());
    assert_eq!(rows(&PriorRow::write(back.clone())), back);
    let [copa, vivace] = &back[..] else { panic!("{back:?}") };
    assert_eq!((copa.run.as_str(), copa.advantage), ("copa:mvfst", 1.5));
    assert!((copa.trials - 30.0).abs() < 0.1, "{copa:?}");
    assert_eq!(vivace.advantage, -0.25);
    let again = tv(&PriorRow::write(back)).unwrap();
    let (first, second) = (service.prior().cells(), again.prior().cells());
    for (a, b) in first.iter().zip(second) {
        assert_eq!(a.point(), b.point());
    }
}

/// A knob that is not named has the default of the algorithm, as everywhere.
#[test]
fn a_knob_that_is_not_named_has_its_default() {
    let row = |run: &str| format!("[[prior]]\nrun = {run:?}\nadvantage = 1\ntrials = 1\n");
    let point = |run: &str| tv(&row(run)).unwrap().prior().cells()[0].point();
    let default = trimtab_cc::find("vivace").unwrap().knobs.iter().find(|k| k.name == "beta");
    let named = format!("vivace:gamma=3,beta={}", default.unwrap().default);
    assert_eq!(point("vivace:gamma=3"), point(&named));
    assert_ne!(point("vivace:gamma=3"), point("vivace:gamma=4"));
}

/// A fleet of a day finds thousands of trials; those of another one are not to drown its own.
#[test]
fn a_prior_counts_as_some_hundred_trials_at_most() {
    let many = WRITTEN.replace("trials = 30.0", "trials = 3e6");
    let weight = |text: &str| tv(text).unwrap().prior().weight();
    assert!((weight(&many) - TRIALS_MAX).abs() < 1.0, "{}", weight(&many));
    assert!((weight(WRITTEN) - 40.0).abs() < 0.1);
    assert_eq!(weight(""), 0.0);
    assert_eq!(tv(WRITTEN).unwrap().alone().prior().weight(), 0.0, "it has other numbers");
}

#[test]
fn a_row_that_is_none_says_what_would_be_right() {
    let error = |from: &str, to: &str| {
        assert!(WRITTEN.contains(from), "{from}");
        let text = WRITTEN.replacen(from, to, 1);
        let error = tv(&text).unwrap_err();
        assert_eq!(error.offset(&text), text.find("[[prior]]").unwrap() + 2, "{error}");
        error.to_string()
    };
    let cases = [
        ("copa:mvfst", "nothing", "prior \"nothing\": no such algorithm"),
        ("copa:mvfst", "bbr3", "the service does not run it: name it under others, or remove"),
        ("gamma=3", "gamma=50", "gamma = 50 is outside the permitted range 1 to 30: remove"),
        ("advantage = 1.5", "advantage = inf", "advantage = inf is no number"),
        ("trials = 30.0", "trials = 0", "trials = 0: give a number above 0"),
    ];
    for (from, to, says) in cases {
        let said = error(from, to);
        assert!(said.contains(says), "{said}");
    }
    let unknown = PriorRow::parse("[[prior]]\nrun = \"bbr\"\nadvantage = 1\ntrials = 1\nrt = 1\n");
    assert!(unknown.unwrap_err().to_string().contains("unknown field `rt`"));
    let gradients = Service::parse(
        "name = \"tv\"\nreward = \"mean(throughput)\"\n[knobs]\ngamma = { min = 1, max = 30 }\n\
         [safe]\ngamma = 3\n[learning]\npreset = \"paper\"\n[[prior]]\nrun = \"vivace:gamma=2\"\nadvantage = 1\n\
         trials = 1\n",
    );
    let said = gradients.unwrap_err().to_string();
    assert!(said.contains("prior needs a model"), "{said}");
}

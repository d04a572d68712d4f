use super::*;

const GAMES: &str = r#"
name = "games"
interval = "10min"
algorithm = "vivace"
reward = "p50(throughput) - 0.1 * mean(loss)"
surrogate = "mean(throughput)"
guards = ["mean(loss) < 0.1", "p75(rtt) < 0.5"]
statistics = ["bitrate", "p50(rtt)", "p90(bitrate)"]
active = 2

[contexts]
bands = [0, 12]
weekend = false
utc_offset = "-05:00"

[knobs]
startup_rate_max = { min = 1, max = 1000, scale = "log" }
beta = { max = 100, scale = "log" }
loss_filter = {}

[fixed]
alpha = 1.5

[safe]
startup_rate_max = 20

[start]
beta = 50

[learning]
preset = "paper"
rate = 0.2
"#;

fn changed(from: &str, to: &str) -> String {
    assert!(GAMES.contains(from), "{from}");
    let error = Service::parse(&GAMES.replace(from, to)).unwrap_err();
    error.to_string()
}

#[test]
fn everything_is_read() {
    let service = Service::parse(GAMES).unwrap();
    assert_eq!(service.interval(), Duration::from_secs(600));
    assert_eq!((service.contexts().count(), service.active()), (2, 2));
    // In the order of the file, which says which ones are learnt first.
    let names: Vec<_> = service.knobs().iter().map(|k| k.name.as_str()).collect();
    assert_eq!(names, ["startup_rate_max", "beta", "loss_filter"]);
    let beta = &service.knobs()[1];
    assert_eq!(
        (beta.dimension.min, beta.dimension.max),
        (5.0, 100.0),
        "the rest is the algorithm's"
    );
    assert_eq!((beta.start, beta.safe), (50.0, 11.35));
    let settings = service.settings();
    assert_eq!((settings.estimator, settings.rate), (Estimator::OnePoint, 0.2));
    let configured = service.configured(&service.safe());
    let of = |knob: &str| configured.iter().find(|(name, _)| name == knob).unwrap().1;
    assert!((of("startup_rate_max") - 20.0).abs() < 1e-9);
    assert!((of("beta") - 11.35).abs() < 1e-9);
    assert_eq!(of("alpha"), 1.5);
    let kept: Vec<String> = service.kept().iter().map(ToString::to_string).collect();
    let means = ["mean(loss)", "mean(rtt)", "mean(throughput)"];
    let others = ["p50(rtt)", "p50(throughput)", "p75(rtt)", "p90(bitrate)"];
    assert_eq!(kept, [&means[..], &others].concat());
    assert!(!service.statistics().any(|name| name.contains('(')), "those are no names");
}

#[test]
fn the_penalty_for_loss_stays_bounded_below() {
    // §5.5; the bound itself is the algorithm's.
    let message = changed("beta = { max", "beta = { min = 1, max");
    assert!(message.contains("beta") && message.contains("within 5 to 1000"), "{message}");
}

#[test]
fn mistakes_say_what_is_right() {
    for (from, to, words) in [
        ("\"games\"", "\"Games\"", "is no name of a service"),
        ("10min", "10", "interval = \"10\": a duration needs a unit"),
        ("10min", "2ms", "1s to 24h"),
        ("\"vivace\"", "\"vivasse\"", "trimtab cc list"),
        ("[0, 12]", "[12]", "ascend from 0"),
        ("-05:00", "EST", "no offset from UTC"),
        ("p50(throughput)", "throughput", "write mean(throughput)"),
        ("p50(throughput)", "p50(bitrat)", "unknown variable `bitrat`"),
        ("mean(loss) < 0.1", "mean(loss)", "is no guard"),
        ("[\"bitrate\"", "[\"bit rate\"", "is no name of a statistic"),
        ("\"p50(rtt)\"", "\"p50(rt)\"", "\"p50(rt)\" is none; write a name"),
        ("\"p50(rtt)\"", "\"p500(rtt)\"", "or a statistic to keep of one"),
        ("active = 2", "active = 0", "1 to 8"),
        // Its safe value then names a knob that is not learnt.
        ("startup_rate_max = { min", "startup_rate_mx = { min", "not under [knobs]"),
        ("loss_filter = {}", "loss_filtre = {}", "did you mean loss_filter?"),
        ("loss_filter = {}", "loss_filter = { scale = \"log\" }", "begins above 0"),
        ("loss_filter = {}", "loss_filter = { min = 0.05, max = 0.01 }", "min below max"),
        ("alpha = 1.5", "alpha = 99", "outside the permitted range 0.1 to 10"),
        ("alpha = 1.5", "beta = 50", "under [knobs] and under [fixed]"),
        ("startup_rate_max = 20\n", "omega = 1\n", "not under [knobs]"),
        ("startup_rate_max = 20\n", "startup_rate_max = 2000\n", "safe startup_rate_max = 2000"),
        ("rate = 0.2", "momentum = 1", "learning: momentum = 1"),
        ("rate = 0.2", "rat = 0.2", "unknown field `rat`"),
    ] {
        let message = changed(from, to);
        assert!(message.contains(words), "{to}: {message}");
        assert!(!message.contains("paper"), "{message}");
    }
    let default_outside = changed("startup_rate_max = 20\n", "");
    assert!(default_outside.contains("safe startup_rate_max = 100000"), "{default_outside}");
}

#[test]
fn mistakes_are_told_where_they_are() {
    let lines = GAMES.lines().enumerate();
    let line_of = |wanted: &str| {
        let mut found = lines.clone().filter(|(_, line)| *line == wanted).map(|(at, _)| at + 1);
        found.next().unwrap_or_else(|| panic!("no line {wanted}"))
    };
    for (from, to, at) in [
        ("\"games\"", "\"Games\"", "name = \"games\""),
        ("10min", "10", "interval = \"10min\""),
        ("\"10min\"", "10", "interval = \"10min\""),
        ("\"vivace\"", "\"vivasse\"", "algorithm = \"vivace\""),
        ("[0, 12]", "[12]", "bands = [0, 12]"),
        ("mean(loss) < 0.1", "mean(loss)", "guards = [\"mean(loss) < 0.1\", \"p75(rtt) < 0.5\"]"),
        ("active = 2", "active = 0", "active = 2"),
        ("loss_filter = {}", "loss_filtre = {}", "loss_filter = {}"),
        ("loss_filter = {}", "loss_filter = { mox = 1 }", "loss_filter = {}"),
        ("alpha = 1.5", "alpha = 99", "alpha = 1.5"),
        ("startup_rate_max = 20\n", "startup_rate_max = 2000\n", "startup_rate_max = 20"),
        // The algorithm's default is outside of the range.
        (
            "[safe]\nstartup_rate_max = 20\n",
            "",
            "startup_rate_max = { min = 1, max = 1000, scale = \"log\" }",
        ),
        ("rate = 0.2", "momentum = 1", "rate = 0.2"),
        ("rate = 0.2", "rat = 0.2", "rate = 0.2"),
    ] {
        let text = GAMES.replace(from, to);
        let error = Service::parse(&text).unwrap_err();
        let line = text[..error.offset(&text)].matches('\n').count() + 1;
        assert_eq!(line, line_of(at), "{to}: {error}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Service::load(Path::new("/no/such/folder/tv.toml")).unwrap_err();
    assert_eq!(error.offset(""), 0);
    let message = error.to_string();
    assert!(message.contains("/no/such/folder/tv.toml"), "{message}");
}

#[test]
fn without_a_knob_or_a_reward_there_is_no_service() {
    let least = "name = \"x\"\nreward = \"mean(throughput)\"\n[knobs]\ngamma = {}\n";
    let service = Service::parse(least).unwrap();
    assert_eq!((service.interval(), service.active()), (Duration::from_secs(1200), 1));
    assert_eq!((service.connections_min(), service.algorithm().name), (1, "vivace"));
    let no_knob = Service::parse(&least.replace("gamma = {}", "")).unwrap_err();
    assert!(no_knob.to_string().contains("at least one under [knobs]"), "{no_knob}");
    let no_reward = Service::parse(&least.replace("reward", "rewards")).unwrap_err();
    assert!(no_reward.to_string().contains("rewards"), "{no_reward}");
    let text = least.replace("gamma = {}", "");
    assert_eq!(&text[no_knob.offset(&text)..], "knobs]\n\n");
}

#[test]
fn a_point_and_its_values_are_the_same_place() {
    let service = Service::parse(GAMES).unwrap();
    for step in 0..=10 {
        let point = vec![f64::from(step) / 10.0; 3];
        let values: Vec<f64> =
            service.configured(&point.clone().into())[..3].iter().map(|k| k.1).collect();
        for (knob, value) in service.knobs().iter().zip(&values) {
            let range = knob.dimension.min..=knob.dimension.max;
            assert!(range.contains(value), "{} = {value}", knob.name);
        }
        for (x, back) in point.iter().zip(service.space().unit(&values)) {
            assert!((x - back).abs() < 1e-9, "{x} {back}");
        }
    }
}

const CHOICE: &str = r#"
name = "tv"
incumbent = "cubic"
others = ["bbr", "copa:mvfst"]
reward = "mean(throughput)"
[knobs]
gamma = { min = 10, max = 5000, scale = "log" }
[safe]
gamma = 100
"#;

#[test]
fn the_incumbent_is_what_is_safe_and_what_is_in_force_first() {
    let service = Service::parse(CHOICE).unwrap();
    let names: Vec<&str> = service.others().iter().map(Other::name).collect();
    assert_eq!((service.incumbent(), names), (Some("cubic"), vec!["cubic", "bbr", "copa:mvfst"]));
    assert_eq!(service.safe(), service.begin());
    assert_eq!(service.configuration(1, &service.safe()).to_string(), "cubic");
    assert_eq!(service.configuration(1, &service.start().into()).algorithm, "vivace");
    let copa = service.other_named("copa:mvfst").unwrap();
    let configuration = service.configuration(7, &copa);
    assert_eq!(configuration.to_string(), "copa:delta=0.04,competitive=0");
    assert_eq!(service.other_in(&configuration).unwrap().name(), "copa:mvfst");
    // The store sorts knobs by name.
    let sorted = Configuration {
        knobs: configuration.knobs.iter().rev().cloned().collect(),
        ..configuration
    };
    assert_eq!(service.other_in(&sorted).unwrap().name(), "copa:mvfst");
    for chosen in [
        Chosen::Other { algorithm: "copa:mvfst".to_owned() },
        Chosen::Knobs(service.space().values(&service.start())),
    ] {
        assert_eq!(service.chosen(&service.point(&chosen)), chosen);
    }
    // An algorithm that the description has no more is the safe one.
    let gone = Chosen::Other { algorithm: "vegas".to_owned() };
    assert_eq!(service.point(&gone), service.safe());
    let alone = service.alone();
    assert_eq!((alone.others().len(), alone.safe().choice()), (0, 0));
}

#[test]
fn an_algorithm_to_choose_is_one_of_the_table_and_named_once() {
    let said = |from: &str, to: &str| {
        assert!(CHOICE.contains(from), "{from}");
        let text = CHOICE.replace(from, to);
        let error = Service::parse(&text).unwrap_err();
        let key = text[error.offset(&text)..].split(' ').next().unwrap_or_default().to_owned();
        (key, error.to_string())
    };
    let (key, why) = said("\"cubic\"", "\"cubik\"");
    assert!(key == "incumbent" && why.starts_with("incumbent \"cubik\": "), "{key}: {why}");
    let (key, why) = said("\"bbr\"", "\"bbr:gain=2\"");
    assert!(key == "others" && why.contains("gain"), "{key}: {why}");
    for twice in ["cubic", "vivace", "copa:competitive=0,delta=0.04"] {
        let (key, why) = said("\"bbr\"", &format!("{twice:?}"));
        assert!(key == "others" && why.contains("is named twice"), "{key}: {why}");
    }
    let many: Vec<String> = (1..=12).map(|n| format!("\"bbr:bw_window={}\"", n + 2)).collect();
    let (_, why) = said("\"bbr\"", &many.join(", "));
    assert!(why.starts_with("14 other algorithms: at most 12"), "{why}");
    let (key, why) = said("[safe]", "[learning]\npreset = \"paper\"\n[safe]");
    assert!(key == "incumbent" && why.contains("need a model"), "{key}: {why}");
    let alone = "name = \"x\"\nreward = \"mean(throughput)\"\n[knobs]\ngamma = {}\n\
                 [learning]\npreset = \"paper\"\nacquisition = \"thompson\"\n";
    let error = Service::parse(alone).unwrap_err();
    assert!(alone[error.offset(alone)..].starts_with("acquisition"), "{error}");
    assert!(error.to_string().contains("needs a model"), "{error}");
}

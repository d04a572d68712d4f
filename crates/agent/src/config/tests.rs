use super::*;
use crate::datapath::named;
use trimtab_fleet_client::Secret;
use trimtab_steer::scheme::MortiseSettings;
use trimtab_units::Duration;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(Path::new("agent.toml"), text)
}

fn refused(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn an_empty_file_changes_nothing_of_anybodys_connections() {
    let config = parse("").unwrap();
    assert!(config.rules.is_empty() && !config.default_algorithm);
    assert_eq!(config.sockets.metrics, None);
    assert_eq!(config.holdback.get(), 0.0);
}

#[test]
fn a_rule_says_which_connections_and_what_becomes_of_them() {
    let config = parse(
        r#"
        mode = "advise"
        holdback = "10%"
        [safety]
        rest = "2min"
        [[rule]]
        name = "video"
        port = [443, "8000-8099"]
        to = "10.0.0.0/8"
        cgroup = "/system.slice/nginx.service"
        qoe = "vod"
        factors = { V = 12 }
        steer = "mortise"
        knobs = { initial_window = 20 }
        [[rule]]
        port = 8080
        assign = true
        knobs = { delta = 0.2 }
        "#,
    )
    .unwrap();
    assert_eq!(config.mode, Mode::Advise);
    assert!((config.holdback.get() - 0.1).abs() < 1e-12);
    assert_eq!(config.safety.rest, Duration::from_secs(120));
    let video = &config.rules[0];
    assert!(video.matches.ports.iter().any(|p| p.contains(8050)));
    assert!(video.matches.to[0].contains("10.1.2.3".parse().unwrap()));
    assert!(!video.matches.to[0].contains("11.1.2.3".parse().unwrap()));
    assert_eq!(video.steering, Some(Steering::Mortise(MortiseSettings::default())));
    assert_eq!(video.knobs, [("initial_window", 20.0)]);
    assert_eq!(video.factors.get_named("V"), Some(12.0));
    assert_eq!((video.assign, config.rules[1].assign), (false, true));
    assert_eq!((config.rules[1].name.as_str(), &config.rules[1].steering), ("rule-2", &None));
}

#[test]
fn a_rule_may_let_algorithms_take_turns() {
    let text = "[[rule]]\nturns = [\"cubic\", \"copa\"]\nevery = \"20s\"\nswitch = \"part\"";
    let config = parse(text).unwrap();
    let rule = &config.rules[0];
    let turns = Turns {
        algorithms: vec![named("cubic"), named("copa")],
        every: Duration::from_secs(20),
        how: trimtab_cc::migrate::Switch::Part,
        look: None,
        select: None,
    };
    assert_eq!((rule.algorithm, &rule.steering), (named("cubic"), &Some(Steering::Turns(turns))));
}

/// Each text is refused with a message that begins like this.
fn refused_with(cases: &[(&str, &str)]) {
    for (text, begins) in cases {
        let message = refused(text);
        assert!(message.starts_with(begins), "{text:?}: {message}");
    }
}

#[test]
fn what_is_wrong_with_turns_has_line_and_column() {
    refused_with(&[
        (
            "[[rule]]\nturns = [\"copa\"]\nevery = \"1s\"",
            "agent.toml:2:10: turns: it takes two algorithms or more",
        ),
        (
            "[[rule]]\nturns = [\"copa\", \"vegas\"]",
            "agent.toml:2:18: no algorithm \"vegas\" runs in eBPF",
        ),
        ("[[rule]]\nturns = [\"copa\", \"cubic\"]", "agent.toml:2:10: turns need a length"),
        (
            "[[rule]]\nswitch = \"part\"",
            "agent.toml:2:10: every, switch, select, model and safe say how turns are taken",
        ),
        (
            "[[rule]]\nturns = [\"copa\", \"cubic\"]\nevery = \"1s\"\nselect = \"luck\"",
            "agent.toml:4:10: no utility is called \"luck\": give one of power, power-loss",
        ),
        (
            "[[rule]]\nselect = \"power\"",
            "agent.toml:2:10: every, switch, select, model and safe say how",
        ),
        (
            "[[rule]]\nturns = [\"copa\", \"cubic\"]\nevery = \"0.9ms\"",
            "agent.toml:3:9: every=900us: it takes a time of 1ms at least",
        ),
        (
            "[[rule]]\nturns = [\"copa\", \"cubic\"]\nevery = \"1s\"\nswitch = \"half\"",
            "agent.toml:4:10: switch is \"full\"",
        ),
        (
            "[[rule]]\nturns = [\"copa\", \"cubic\"]\nevery = \"1s\"\nalgorithm = \"cubic\"",
            "agent.toml:4:13: connections begin with the first of turns",
        ),
        (
            "[[rule]]\nturns = [\"copa\", \"cubic\"]\nevery = \"1s\"\nknobs = { delta = 0.1 }",
            "agent.toml:4:11: a knob belongs to one algorithm",
        ),
        (
            "[[rule]]\nturns = [\"copa\", \"cubic\"]\nevery = \"1s\"\nqoe = \"vod\"\nsteer = \"mortise\"",
            "agent.toml:5:9: mortise steers one algorithm",
        ),
    ]);
}

#[test]
fn what_is_wrong_has_line_and_column() {
    refused_with(&[
        ("mode = \"aply\"", "agent.toml:1:8: unknown variant `aply`"),
        ("moed = \"apply\"", "agent.toml:1:1: unknown field `moed`"),
        ("holdback = \"ten\"", "agent.toml:1:12: \"ten\" is no share"),
        ("[[rule]]\nport = [80, \"x\"]", "agent.toml:2:13: \"x\" is no port"),
        ("[[rule]]\nport = 70000", "agent.toml:2:8: \"70000\" is no port"),
        ("[[rule]]\nto = \"10.0.0.1/8\"", "agent.toml:2:6: \"10.0.0.1/8\" has bits beyond"),
        ("[[rule]]\nsteer = \"mortise\"", "agent.toml:2:9: mortise needs"),
        (
            "[[rule]]\nqoe = \"ln(T) - weigth\"",
            "agent.toml:2:16: formula, column 9: unknown variable",
        ),
        ("[[rule]]\nknobs = { delat = 1 }", "agent.toml:2:11: copa has no knob \"delat\""),
        ("[[rule]]\nknobs = { delta = 9 }", "agent.toml:2:11: delta = 9 is out of its range"),
        ("[[rule]]\nalgorithm = \"vegas\"", "agent.toml:2:13: no algorithm \"vegas\""),
        (
            "[[rule]]\nalgorithm = \"cubic\"\nqoe = \"web\"\nsteer = \"mortise\"",
            "agent.toml:4:9: mortise steers copa",
        ),
        (
            "[[rule]]\nalgorithm = \"cubic\"\nknobs = { delta = 0.1 }",
            "agent.toml:3:11: cubic has no knob \"delta\"; it has ",
        ),
        ("[[rule]]\nname = \"a\"\n[[rule]]\nname = \"a\"", "agent.toml:4:8: there is a rule"),
        (
            "[[rule]]\nqoe = \"web\"\nsteer = \"mortise\"\nknobs = { delta = 0.1 }",
            "agent.toml:4:11: mortise turns",
        ),
        ("[safety]\nrest = \"60\"", "agent.toml:2:8: "),
        (
            "[[rule]]\nassign = \"copa\"",
            "agent.toml:2:10: this is string \"copa\", and true or false is wanted",
        ),
        ("[rule]\nport = 80", "agent.toml:1:1: there may be several rules: write [[rule]]"),
        ("holdback = 10", "agent.toml:1:12: \"10\" is no share: write it in percent, e.g. \"10%\""),
        ("holdback = 25", "agent.toml:1:12: \"25\" is no share: write it in percent, e.g. \"25%\""),
        ("[safety]\nrest = 60", "agent.toml:2:8: "),
        ("[[rule]]\ncgroup = \"nginx.service\"", "agent.toml:2:10: a cgroup is named by"),
        ("[[rule]]\nnetns = \"blue\"", "agent.toml:2:9: a network namespace is named by"),
        ("[[rule]]\nassign = true", "agent.toml:2:10: a rule that assigns says to which sockets"),
        (
            "[[rule]]\nnetns = \"/proc/self/ns/net\"\nassign = true",
            "agent.toml:3:10: a rule that assigns says to which sockets",
        ),
        ("a = [1,", "agent.toml:1:"),
    ]);
}

#[test]
fn prefixes_hold_whole_bits_and_see_through_mapped_addresses() {
    let prefix: Prefix = "192.0.2.0/25".parse().unwrap();
    assert!(prefix.contains("::ffff:192.0.2.127".parse().unwrap()));
    assert!(!prefix.contains("192.0.2.128".parse().unwrap()));
    let all: Prefix = "0.0.0.0/0".parse().unwrap();
    assert!(
        all.contains("203.0.113.9".parse().unwrap())
            && !all.contains("2001:db8::1".parse().unwrap())
    );
    let six: Prefix = "2001:db8::/32".parse().unwrap();
    assert!(six.contains("2001:db8:1::1".parse().unwrap()));
    assert!("1.2.3.4/33".parse::<Prefix>().is_err());
}

#[test]
fn a_learnt_policy_is_named_with_its_file_and_what_is_safe() {
    let rule =
        |more: &str| format!("[[rule]]\nturns = [\"cubic\", \"copa\"]\nselect = \"floo\"\n{more}");
    let config =
        Config::parse(Path::new("/etc/here/agent.toml"), &rule("model = \"a.st\"")).unwrap();
    let Some(Steering::Turns(turns)) = &config.rules[0].steering else { panic!("turns") };
    assert_eq!(turns.every, Duration::from_secs(12), "as often as Floo");
    let Some(Select::Learnt(learnt)) = &turns.select else { panic!("learnt") };
    assert_eq!((learnt.file.as_path(), learnt.safe), (Path::new("/etc/here/a.st"), named("cubic")));
    let config = parse(&rule("model = \"/a.st\"\nsafe = \"copa\"\nevery = \"3s\"")).unwrap();
    let Some(Steering::Turns(turns)) = &config.rules[0].steering else { panic!("turns") };
    assert_eq!(turns.every, Duration::from_secs(3));
    let Some(Select::Learnt(learnt)) = &turns.select else { panic!("learnt") };
    assert_eq!((learnt.file.as_path(), learnt.safe), (Path::new("/a.st"), named("copa")));

    assert!(refused(&rule("")).contains("a learnt policy needs its file: give model"));
    let e = refused(&rule("model = \"a\"\nsafe = \"reno\""));
    assert!(e.contains("no algorithm \"reno\" runs in eBPF"), "{e}");
    let e = refused("[[rule]]\nturns = [\"cubic\", \"copa\"]\nevery = \"1s\"\nsafe = \"copa\"");
    assert!(e.contains("agent.toml:4:8: model and safe belong to a learnt policy"), "{e}");
    let e = refused("[[rule]]\nmodel = \"a\"");
    assert!(e.contains("say how turns are taken: give turns"), "{e}");
}

/// Muses is its trees: what says one of the two, or mixes it with turns, is refused.
#[test]
fn muses_is_trees_and_nothing_else() {
    let refused = |text: &str| {
        let text = format!("[[rule]]\n{text}\n");
        Config::parse(Path::new("/a.toml"), &text).unwrap_err().to_string()
    };
    for (text, what) in [
        ("algorithm = \"muses\"", "give both or neither"),
        ("algorithm = \"copa\"\nsteer = \"muses\"", "give both or neither"),
        ("steer = \"muses\"\nturns = [\"copa\", \"cubic\"]\nevery = \"1s\"", "turns name several"),
        ("turns = [\"copa\", \"muses\"]\nevery = \"1s\"", "muses takes no turns"),
        ("steer = \"muses\"\nsafe = \"muses\"", "is not safe"),
        ("steer = \"muses\"\nknobs = { tree = 3 }", "turns tree itself"),
        ("steer = \"muses\"\nevery = \"1s\"", "give turns"),
    ] {
        let error = refused(text);
        assert!(error.contains(what), "{text}: {error}");
    }
    let text = "[[rule]]\nport = 443\nalgorithm = \"muses\"\nsteer = \"muses\"\nassign = true\nknobs = { cap = 100 }\n";
    let config = Config::parse(Path::new("/a.toml"), text).unwrap();
    let rule = &config.rules[0];
    assert!(matches!(
        &rule.steering,
        Some(Steering::Muses(Forest { safe: Some(safe), .. })) if *safe == named("copa")
    ));
    assert_eq!((rule.algorithm, rule.assign), (named("muses"), true));
}

#[test]
fn a_rule_may_leave_its_knobs_to_the_engine_of_a_fleet() {
    const FLEET: &str =
        "[fleet]\nengine = \"https://engine.example:7480\"\ntoken_file = \"edge.token\"\n";
    let rule = |more: &str| format!("{FLEET}[[rule]]\nsteer = \"fleet\"\n{more}");
    let text = rule("service = \"tv\"");
    let config = Config::parse(Path::new("/etc/trimtab/agent.toml"), &text).unwrap();
    let fleet = config.fleet.unwrap();
    let file = |name: &str| Path::new("/etc/trimtab").join(name);
    assert_eq!(fleet.secret, Secret::File(file("edge.token")), "next to the configuration");
    assert_eq!(fleet.folder, Path::new("/var/lib/trimtab/edge"));
    let error = fleet.options().unwrap_err();
    assert!(error.contains("trimtab engine token add"), "{error}");
    assert_eq!(config.rules[0].algorithm, named("vivace"));
    let pair = "certificate = \"edge.pem\"\nkey = \"edge.key\"";
    let certified = text.replace("token_file = \"edge.token\"", pair);
    let other = Config::parse(Path::new("/etc/trimtab/agent.toml"), &certified).unwrap();
    let pair = Secret::Certificate { certificate: file("edge.pem"), key: file("edge.key") };
    assert_eq!(other.fleet.unwrap().secret, pair);
    let Some(Steering::Fleet(customized)) = &config.rules[0].steering else { panic!() };
    assert_eq!((customized.service.as_str(), customized.prefix), ("tv", [24, 48]));

    let folder = tempfile::tempdir().unwrap();
    let groups = folder.path().join("together.txt");
    let with_groups = rule(&format!("service = \"tv\"\ntogether = {groups:?}"));
    let missing = refused(&with_groups);
    assert!(missing.contains("the groups of prefixes, ") && missing.contains("together.txt"));
    std::fs::write(&groups, "192.0.2.0/24 198.51.100.0/24 2001:db8:1::/48\n").unwrap();
    let config = parse(&with_groups).unwrap();
    let Some(Steering::Fleet(customized)) = &config.rules[0].steering else { panic!() };
    for (client, aggregate) in [
        ("192.0.2.7", "tv/192.0.2.0/24"),
        ("198.51.100.7", "tv/192.0.2.0/24"),
        ("2001:db8:1::7", "tv/192.0.2.0/24"),
        ("203.0.113.7", "tv/203.0.113.0/24"),
    ] {
        assert_eq!(customized.key(client.parse().unwrap()).to_string(), aggregate);
    }
    std::fs::write(&groups, "192.0.2.0/25 198.51.100.0/24\n").unwrap();
    let other = refused(&with_groups);
    assert!(other.contains("192.0.2.0/25 is no aggregate here, where prefixes have 24"), "{other}");
    std::fs::write(&groups, "\n192.0.2.0/24").unwrap();
    let alone = refused(&with_groups);
    assert!(alone.contains("line 2: 192.0.2.0/24 is alone"), "{alone}");

    for (text, said) in [
        ("[[rule]]\ntogether = \"x\"".to_owned(), "add steer = \"fleet\""),
        ("[[rule]]\nsteer = \"fleet\"\nservice = \"tv\"".to_owned(), "add [fleet] with engine"),
        (rule(""), "give service = "),
        (rule("service = \"TV\""), "lower-case"),
        (rule("service = \"tv\"\nprefix = [33, 48]"), "at most [32, 128]"),
        (rule("service = \"tv\"\nknobs = { gamma = 1 }"), "under [fixed] of the service"),
        (
            rule("service = \"tv\"\nturns = [\"copa\", \"cubic\"]\nevery = \"20s\""),
            "give only one of the two",
        ),
        ("[[rule]]\nservice = \"tv\"".to_owned(), "add steer = \"fleet\""),
        ("[[rule]]\nprefix = [24, 48]".to_owned(), "or use to"),
        ("[fleet]\nengine = \"x\"".to_owned(), "needs either token_file"),
        ("[fleet]\nengine = \"x\"\ncertificate = \"x\"".to_owned(), "or certificate and key"),
    ] {
        let error = refused(&text);
        assert!(error.contains(said), "{error}");
        assert!(error.starts_with("agent.toml:"), "{error}");
    }
}

/// A scheme by its text is the same as by keys of the rule.
#[test]
fn a_rule_names_its_steering_as_every_command_does() {
    let steering = |rule: &str| {
        let config = parse(&format!("[[rule]]\nqoe = \"web\"\n{rule}\n")).unwrap();
        (config.rules[0].algorithm, config.rules[0].steering.clone())
    };
    for (text, keys) in [
        (
            "steer = \"switch:cubic,copa:every=5s:part\"",
            "turns = [\"cubic\", \"copa\"]\nevery = \"5s\"\nswitch = \"part\"",
        ),
        (
            "steer = \"select:power:every=3s\"\nturns = [\"copa\", \"bbr\"]",
            "turns = [\"copa\", \"bbr\"]\nevery = \"3s\"\nselect = \"power\"",
        ),
        (
            "steer = \"floo:model=a.st:part:safe=copa\"\nturns = [\"cubic\", \"copa\"]",
            "turns = [\"cubic\", \"copa\"]\nselect = \"floo\"\nmodel = \"a.st\"\nswitch = \"part\"\nsafe = \"copa\"",
        ),
        ("steer = \"muses:safe=cubic\"", "steer = \"muses\"\nsafe = \"cubic\""),
        ("steer = \"muses:safe=copa:mvfst\"", "steer = \"muses\"\nsafe = \"copa\""),
        (
            "steer = \"muses:model=a.trees:safe=none\"",
            "steer = \"muses\"\nmodel = \"a.trees\"\nsafe = \"none\"",
        ),
        ("steer = \"mortise:sigma=0.5\"", "steer = \"mortise\""),
    ] {
        assert_eq!(steering(text), steering(keys), "{text}");
    }
    let (algorithm, disc) = steering("steer = \"mortise-disc:sigma=0.3,cpd=0\"");
    let settings = MortiseSettings { sigma: 0.3, change_point_detection: false, discrete: true };
    assert_eq!((algorithm, disc), (named("copa"), Some(Steering::Mortise(settings))));
    // Algorithms are those of the paper that this kernel has, and the shipped policy is known by its name.
    let (algorithm, floo) = steering("steer = \"floo:counterfactual:every=20s:look=2s\"");
    let Some(Steering::Turns(turns)) = floo else { panic!("turns") };
    assert_eq!(turns.algorithms, ["cubic", "bbr", "copa"].map(named));
    assert_eq!((algorithm, turns.every), (named("cubic"), Duration::from_secs(20)));
    assert_eq!(turns.look, Some(Duration::from_secs(2)));
    let Some(Select::Learnt(learnt)) = &turns.select else { panic!("learnt") };
    assert_eq!((learnt.file.as_path(), learnt.trouble()), (Path::new("floo-counterfactual"), None));
    assert_eq!(learnt.safe, named("cubic"));
    let (_, muses) = steering("steer = \"muses:safe=cubic:beta=0.5,linux=1\"");
    let Some(Steering::Muses(forest)) = muses else { panic!("trees") };
    assert_eq!((forest.safe, forest.safe_knobs), (Some(named("cubic")), vec![("beta", 0.5)]));
    let (algorithm, treeg) = steering("steer = \"treeg\"");
    let Some(Steering::Muses(forest)) = treeg else { panic!("trees") };
    assert_eq!((algorithm, forest.trees.unwrap().count()), (named("muses"), 1));
}

#[test]
fn a_scheme_that_the_agent_cannot_run_is_refused_with_the_reason() {
    for (rule, what) in [
        ("steer = \"mortice\"", "did you mean mortise?"),
        ("steer = \"mortice\"", "a rule may also say \"fleet\" or \"none\""),
        ("steer = \"cubic\"", "give it as algorithm = \"cubic\""),
        ("steer = \"oracle:copa\"", "only the simulator can compute"),
        ("steer = \"omniscient\"", "only the simulator can compute"),
        ("steer = \"muses:lstm\"", "needs floating point"),
        ("steer = \"select:antelope\"", "does not run select:antelope"),
        ("steer = \"floo+mortise\"", "does not run floo+mortise"),
        ("steer = \"mortise:vivace\"", "steers no knobs of vivace by experience: give steer"),
        ("steer = \"mortise:paper\"", "a control for comparisons, which the agent does not run"),
        ("steer = \"mortise:sigma=2\"", "sigma = 2 is outside its range 0 to 1"),
        ("steer = \"floo:every=0.1ms\"", "every=100us: it takes a time of 1ms at least"),
        ("steer = \"switch:cubic,vegas\"", "no algorithm \"vegas\" runs in eBPF"),
        ("steer = \"switch:cubic,copa\"\nturns = [\"copa\", \"bbr\"]", "leave turns out"),
        ("steer = \"floo:safe=vivace\"", "the fallback has to be one of turns"),
        ("steer = \"floo:safe=copa:delta=0.1\"", "name it without knobs"),
        ("steer = \"muses:safe=vivace\"", "that algorithm is not safe"),
    ] {
        let error = refused(&format!("[[rule]]\nqoe = \"web\"\n{rule}\n"));
        assert!(error.starts_with("agent.toml:3:9: ") && error.contains(what), "{rule}: {error}");
    }
    let error = refused("[[rule]]\nsteer = \"floo\"\nalgorithm = \"copa\"\n");
    assert!(error.starts_with("agent.toml:3:13: connections begin with cubic"), "{error}");
    // A setting is given once.
    for (rule, at) in [
        ("steer = \"floo:every=20s\"\nevery = \"20s\"", "agent.toml:4:9: "),
        ("steer = \"switch:cubic,copa\"\nswitch = \"part\"", "agent.toml:4:10: "),
        ("steer = \"muses:safe=cubic\"\nmodel = \"a\"", "agent.toml:4:9: "),
    ] {
        let error = refused(&format!("[[rule]]\nqoe = \"web\"\n{rule}\n"));
        assert!(error.starts_with(at) && error.contains("stand in steer"), "{rule}: {error}");
    }
}

#[test]
fn a_cgroup_may_hold_a_share_of_the_slots_and_one_at_least() {
    let slots =
        |text: &str| parse(&format!("[datapath]\n{text}\n")).unwrap().datapath.cgroup_slots();
    assert_eq!((slots("slots = 64"), slots("slots = 64\ncgroup_share = \"25%\"")), (64, 16));
    assert_eq!(slots("slots = 64\ncgroup_share = \"1%\""), 1);
    let none = refused("[datapath]\ncgroup_share = \"0%\"\n");
    assert!(none.contains(":2:16:") && none.contains("no connection could be steered"), "{none}");
}

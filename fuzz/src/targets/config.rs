//! The agent's configuration: any text is one with which an agent runs for a year, or an error with
//! one line to show and a place in the text.

use std::collections::BTreeSet;
use std::net::IpAddr;

use trimtab_agent::fuzzing::{self, Agent};
use trimtab_agent::{Config, ConfigError};

fn check(config: Config) {
    let names: BTreeSet<&str> = config.rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names.len(), config.rules.len(), "two rules have one name");
    for rule in &config.rules {
        for (name, value) in &rule.knobs {
            let knob = rule.algorithm.knobs().iter().find(|knob| knob.name == *name);
            let knob = knob.expect("a knob of the rule's algorithm");
            assert!((knob.min..=knob.max).contains(value), "{name} = {value}");
        }
    }
    if let Ok(checked) = fuzzing::check(&config) {
        assert_eq!(checked.rules, config.rules.len());
        assert!(checked.to_string().ends_with('\n'));
    }
    let agent = Agent::new(config);
    let client = IpAddr::from([192, 0, 2, 7]);
    let mut share = 0.0;
    for seconds in [0, 5, 600, 86_400, 31_536_000] {
        let now = agent.later(seconds, client);
        assert!((share..=1.0).contains(&now), "a rollout goes from {share} to {now}");
        share = now;
    }
}

pub(crate) fn target(text: &str) {
match fuzzing::config(text) {
    Ok(config) => check(config),
    Err(ConfigError::Wrong { line, column, message, .. }) => {
        assert!(!message.contains('\n'), "{message}");
        let all: Vec<&str> = text.split('\n').collect();
        let here = all.get(line - 1).expect("a line of the text");
        assert!((1..=here.chars().count() + 1).contains(&column), "{line}:{column}: {message}");
    }
    Err(error) => panic!("nothing is read from a file: {error}"),
}
}

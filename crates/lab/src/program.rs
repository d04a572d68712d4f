//! A program that takes part in the simulation of a fleet: JSON lines over its standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use trimtab_fleet_sim::{Chooser, Contender};

/// A contender that is a command for `sh`, started for each aggregate.
pub fn contender(name: &str, command: &str) -> Contender {
    let command = command.to_owned();
    Contender {
        name: name.to_owned(),
        begin: Box::new(move |service, aggregate, seed| {
            let mut program = Program::start(&command)?;
            let knobs: Vec<&str> = service.knobs().iter().map(|k| k.name.as_str()).collect();
            let start = service.start();
            program.say(&json!({ "begin": {
                "knobs": knobs, "start": start, "aggregate": aggregate, "seed": seed
            }}))?;
            Ok(Box::new(program))
        }),
    }
}

struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(command: &str) -> Result<Self, String> {
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start {command:?}: {e}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.ok_or("it has no standard output")?);
        Ok(Self { child, input, output })
    }

    fn say(&mut self, line: &Value) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("it was told everything")?;
        writeln!(input, "{line}").map_err(|e| format!("it does not listen any more: {e}"))
    }
}

impl Chooser for Program {
    fn choose(&mut self, context: &str) -> Result<Vec<f64>, String> {
        self.say(&json!({ "choose": context }))?;
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|e| format!("it does not answer: {e}"))?;
        if line.is_empty() {
            return Err("it ended before it had answered; what it said of that is above".into());
        }
        serde_json::from_str(&line)
            .map_err(|_| format!("a list of numbers was to come, not {:?}", line.trim_end()))
    }

    fn learn(&mut self, context: &str, point: &[f64], reward: f64) -> Result<(), String> {
        self.say(&json!({ "learn": { "context": context, "point": point, "reward": reward } }))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The end of its input is the end of its work.
        self.input = None;
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use trimtab_fleet::Service;

    use super::*;

    const SERVICE: &str = r#"
        name = "games"
        reward = "mean(throughput)"
        [knobs]
        gamma = { min = 10, max = 5000, scale = "log" }
    "#;

    #[test]
    fn a_program_is_asked_and_told() {
        let service = Service::parse(SERVICE).unwrap();
        // It answers with the reward that it was told last.
        let echo = r#"r=0; while read -r line; do case $line in *'"learn"'*) r=${line##*'"reward":'}; r=${r%%\}*};; *'"choose"'*) echo "[$r]";; esac; done"#;
        let mut program = (contender("echo", echo).begin)(&service, 0, 1).unwrap();
        assert_eq!(program.choose("weekend").unwrap(), [0.0]);
        program.learn("weekend", &[0.0], 0.25).unwrap();
        assert_eq!(program.choose("weekend").unwrap(), [0.25]);
    }

    #[test]
    fn one_that_does_not_do_its_part_says_so() {
        let service = Service::parse(SERVICE).unwrap();
        let said = |command: &str| {
            let mut program = (contender("bad", command).begin)(&service, 0, 1).unwrap();
            program.choose("weekend").unwrap_err()
        };
        assert!(said("cat >/dev/null & echo no").contains("a list of numbers was to come"));
        let ended = said("read line; exec true");
        assert!(ended.contains("ended before") || ended.contains("does not listen"), "{ended}");
    }
}

//! A program that takes part in the simulation of a fleet: JSON lines over its standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::fleet::{Chooser, Scheme};
use serde_json::{Value, json};

/// How long a program may go on once there is nothing more to ask; then it is killed.
const LEAVE: Duration = Duration::from_secs(2);

/// A scheme that is a command for `sh`, started for each aggregate. Each answer may take `patience`.
pub fn scheme(name: &str, command: &str, patience: Duration) -> Scheme {
    let command = command.to_owned();
    Scheme {
        name: name.to_owned(),
        begin: Box::new(move |service, aggregate, seed| {
            let mut program = Program::start(&command, patience)?;
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
    /// Its lines, read by a thread of their own: a pipe has no timeout.
    answers: Receiver<std::io::Result<String>>,
    patience: Duration,
}

impl Program {
    fn start(command: &str, patience: Duration) -> Result<Self, String> {
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A group of its own, so that what it starts can be ended with it.
            .process_group(0)
            .spawn()
            .map_err(|e| format!("cannot start {command:?}: {e}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.ok_or("it has no standard output")?);
        let (lines, answers) = channel();
        // It ends with the output, or with the program that nobody asks any more.
        std::thread::spawn(move || output.lines().try_for_each(|line| lines.send(line)));
        Ok(Self { child, input, answers, patience })
    }

    fn say(&mut self, line: &Value) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("it was told everything")?;
        writeln!(input, "{line}").map_err(|e| format!("it does not listen any more: {e}"))
    }
}

impl Chooser for Program {
    fn choose(&mut self, context: &str) -> Result<Vec<f64>, String> {
        self.say(&json!({ "choose": context }))?;
        let line = match self.answers.recv_timeout(self.patience) {
            Ok(line) => line.map_err(|e| format!("it does not answer: {e}"))?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err("it ended before it had answered; what it said of that is above".into());
            }
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!(
                    "no answer within {} s; mend it, or give it longer with --scheme-timeout",
                    self.patience.as_secs_f64()
                ));
            }
        };
        serde_json::from_str(&line)
            .map_err(|_| format!("a list of numbers was to come, not {line:?}"))
    }

    fn learn(&mut self, context: &str, point: &[f64], reward: f64) -> Result<(), String> {
        self.say(&json!({ "learn": { "context": context, "point": point, "reward": reward } }))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The end of its input is the end of its work.
        self.input = None;
        let until = Instant::now() + LEAVE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        // What it left behind, too: nothing that is started here outlives the simulation.
        if let Ok(pid) = i32::try_from(self.child.id())
            && let Some(group) = Pid::from_raw(pid)
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use trimtab_fleet::Service;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

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
        let mut program = (scheme("echo", echo, LONG).begin)(&service, 0, 1).unwrap();
        assert_eq!(program.choose("weekend").unwrap(), [0.0]);
        program.learn("weekend", &[0.0], 0.25).unwrap();
        assert_eq!(program.choose("weekend").unwrap(), [0.25]);
    }

    #[test]
    fn one_that_does_not_do_its_part_says_so() {
        let service = Service::parse(SERVICE).unwrap();
        let said = |command: &str| {
            let mut program = (scheme("bad", command, LONG).begin)(&service, 0, 1).unwrap();
            program.choose("weekend").unwrap_err()
        };
        assert!(
            said("read line; echo no; cat >/dev/null").contains("a list of numbers was to come")
        );
        let ended = said("read line; exec true");
        assert!(ended.contains("ended before") || ended.contains("does not listen"), "{ended}");
    }

    #[test]
    fn one_that_hangs_is_given_up_and_ended() {
        let service = Service::parse(SERVICE).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        // It heeds neither its input nor the end of it, and has a child that does not, either.
        let command = format!("sleep 600 & echo $! >{}; wait", file.display());
        let begin = scheme("stuck", &command, Duration::from_millis(300)).begin;
        let mut program = begin(&service, 0, 1).unwrap();
        let said = program.choose("weekend").unwrap_err();
        assert!(said.starts_with("no answer within 0.3 s; "), "{said}");
        let until = Instant::now() + LONG;
        let child: i32 = loop {
            match std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok()) {
                Some(pid) => break pid,
                None => assert!(Instant::now() < until, "it never began"),
            }
        };
        drop(program);
        // Gone, or for the init process to take away.
        let state = || std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        while !state().is_empty() && !state().contains(") Z ") {
            assert!(Instant::now() < until, "{}", state());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

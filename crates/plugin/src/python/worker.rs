//! A Python process that holds the controllers of one thread, and the frames that go both ways.
//!
//! A request is its kind (u8), the number of a controller (u32), a count (u16) and as many f64; an
//! answer is bits (u8), a window in bytes and a rate in Mbit/s (f64), the length of a text (u32)
//! and the text. All are in little endian. `worker.py` is the other side.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::json;

use crate::decided::Answer;
use crate::error::Problem;
use crate::monitor::OBSERVATIONS;

const SCRIPT: &str = include_str!("worker.py");

/// The interpreter, where `TRIMTAB_PYTHON` names none.
const PYTHON: &str = "python3";

/// The bits of an answer.
const WINDOW: u8 = 1;
const RATE: u8 = 2;
const FAILED: u8 = 4;

/// The names of what a class sees, with their units.
const CONFIG: [&str; 4] = ["mss_bytes", "initial_window_bytes", "min_window_bytes", "seed"];
pub(super) const ACK: [&str; 11] = [
    "now_ms",
    "acked_bytes",
    "rtt_ms",
    "srtt_ms",
    "min_rtt_ms",
    "inflight_bytes",
    "delivered_bytes",
    "newest_sent_ms",
    "delivery_rate_mbps",
    "cwnd_limited",
    "in_recovery",
];
pub(super) const LOSS: [&str; 4] = ["now_ms", "lost_bytes", "newest_sent_ms", "inflight_bytes"];
pub(super) const TIMEOUT: [&str; 2] = ["now_ms", "prior_inflight_bytes"];

/// What is asked of a worker, as `worker.py` numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    New = 0,
    Copy = 1,
    Drop = 2,
    Interval = 3,
    Ack = 4,
    Loss = 5,
    Timeout = 6,
    Knob = 7,
}

/// A class of a file.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// The only one of the file, where this is empty.
    pub(super) class: String,
}

/// What a class says of itself.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Description {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) interval: String,
    pub(super) manages_recovery: bool,
    events: Vec<u8>,
    pub(super) knobs: Vec<(String, f64, f64, f64, String, String)>,
}

impl Description {
    /// Whether the class has a method for it.
    pub(super) fn takes(&self, event: Request) -> bool {
        self.events.contains(&(event as u8))
    }
}

/// A process, and the pipes to it.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    /// `None` once it is to end.
    requests: Option<BufWriter<ChildStdin>>,
    answers: BufReader<ChildStdout>,
    /// The number of the next controller.
    next: u32,
}

impl Worker {
    /// Starts one, and has it load the class.
    pub(super) fn start(source: &Source) -> Result<(Self, Description), Problem> {
        let program = std::env::var("TRIMTAB_PYTHON").unwrap_or_else(|_| PYTHON.to_owned());
        let names = json!({"config": CONFIG, "interval": OBSERVATIONS.map(|(name, _)| name),
                           "ack": ACK, "loss": LOSS, "timeout": TIMEOUT});
        let child = Command::new(&program)
            .args(["-c", SCRIPT])
            .arg(&source.path)
            .args([&source.class, &names.to_string()])
            // The order of sets is that of hashes.
            .env("PYTHONHASHSEED", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|cause| Problem::Python { program, cause })?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both were asked for")
        };
        let requests = Some(BufWriter::new(requests));
        let mut worker = Self { child, requests, answers: BufReader::new(answers), next: 0 };
        let (_, text) = worker.answer().map_err(Problem::Class)?;
        let description = serde_json::from_str(&text).map_err(|problem| {
            Problem::Class(format!("the worker gave no description: {problem}"))
        })?;
        Ok((worker, description))
    }

    /// A number for a new controller.
    pub(super) fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// Asks for something, and waits for the answer.
    pub(super) fn ask(
        &mut self,
        what: Request,
        number: u32,
        values: &[f64],
    ) -> Result<Answer, String> {
        self.tell(what, number, values)
            .and_then(|()| self.requests.as_mut().map_or(Ok(()), Write::flush))
            .map_err(|cause| self.gone(&cause))?;
        self.answer().map(|(answer, _)| answer)
    }

    /// Says something that has no answer. It leaves with the next request.
    pub(super) fn tell(
        &mut self,
        what: Request,
        number: u32,
        values: &[f64],
    ) -> std::io::Result<()> {
        let Some(requests) = self.requests.as_mut() else { return Ok(()) };
        requests.write_all(&[what as u8])?;
        requests.write_all(&number.to_le_bytes())?;
        // A request has some tens of values at most.
        requests.write_all(&(values.len() as u16).to_le_bytes())?;
        values.iter().try_for_each(|value| requests.write_all(&value.to_le_bytes()))
    }

    fn answer(&mut self) -> Result<(Answer, String), String> {
        let (bits, answer, text) = self.read().map_err(|cause| self.gone(&cause))?;
        if bits & FAILED == 0 { Ok((answer, text)) } else { Err(text) }
    }

    fn read(&mut self) -> std::io::Result<(u8, Answer, String)> {
        let mut head = [0; 21];
        self.answers.read_exact(&mut head)?;
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&head[at..at + 8]);
            f64::from_le_bytes(bytes)
        };
        let has = |bit: u8| head[0] & bit != 0;
        let answer = Answer {
            window_bytes: has(WINDOW).then(|| number(1)),
            rate_mbps: has(RATE).then(|| number(9)),
        };
        let length = u32::from_le_bytes([head[17], head[18], head[19], head[20]]);
        let mut text = vec![0; length as usize];
        self.answers.read_exact(&mut text)?;
        Ok((head[0], answer, String::from_utf8_lossy(&text).into_owned()))
    }

    /// The process has ended, or its pipes have.
    fn gone(&mut self, cause: &std::io::Error) -> String {
        self.requests = None;
        let ended = self.child.wait();
        let how = ended.map_or_else(|_| cause.to_string(), |status| status.to_string());
        format!("the Python process ended ({how}): look above for what it printed")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It ends when there is nothing more to read. How it ends changes nothing.
        self.requests = None;
        let _ = self.child.wait();
    }
}

/// A worker that controllers share.
pub(super) type Shared = Arc<Mutex<Worker>>;

/// A worker for this moment.
pub(super) fn lock(worker: &Shared) -> MutexGuard<'_, Worker> {
    worker.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The workers of this thread, by the number of their plug-in.
    static WORKERS: RefCell<HashMap<u64, Shared>> = RefCell::default();
}

/// This thread's worker for a plug-in, which starts where there is none yet.
pub(super) fn of_this_thread(plugin: u64, source: &Source) -> Result<Shared, String> {
    WORKERS.with_borrow_mut(|workers| {
        if let Some(worker) = workers.get(&plugin) {
            return Ok(worker.clone());
        }
        let (worker, _) = Worker::start(source).map_err(|problem| problem.to_string())?;
        let worker = Arc::new(Mutex::new(worker));
        workers.insert(plugin, worker.clone());
        Ok(worker)
    })
}

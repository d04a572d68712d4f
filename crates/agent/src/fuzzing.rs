//! The doors without their sockets, for the targets in `fuzz/` alone: nothing else turns this
//! feature on.
//!
//! An [`Agent`] here is the daemon's [`Core`] on a datapath without connections.

use std::cell::RefCell;
use std::io::{Read, Result as Io, Write};
use std::net::IpAddr;
use std::path::Path;

use trimtab_cc::migrate::Switch;
use trimtab_cc::muses::Trees;
use trimtab_datapath::Towards;
use trimtab_datapath::{Alarm, Algorithm, By, Error as Refusal, Identity, Switching, Totals};
use trimtab_qoe::Factors;
use trimtab_steer::Report;
use trimtab_units::Time;

use crate::config::{Checked, Config, ConfigError, Grounds, checked};
use crate::core::Core;
use crate::datapath::{ALGORITHMS, Datapath, Link};
use crate::doors::control::{self, Question};
use crate::doors::{http, serve};
use crate::error::Error;
use crate::loader::check::Allowed;
use crate::loader::protocol;
use crate::operate::{HoldStatus, Order, file};

/// The agent's clock, and the wall clock at that moment in seconds since 1970.
const NOW: Time = Time::from_secs(1_000_000);
const WALL_S: f64 = 1.8e9;

/// What the metrics door answers to these bytes, which arrive in pieces of this size.
pub fn metrics(request: &[u8], piece: usize, page: &str) -> Vec<u8> {
    let client = Client { left: request, piece, answer: Vec::new() };
    let answer = |question: &[u8], _: &Client<'_>| http::answer(question, || page.to_owned());
    serve::converse(client, &http::TERMS, answer).answer
}

/// The order that a question of the control socket gives, if it is one.
///
/// # Errors
/// The bytes are no question.
pub fn order(question: &[u8]) -> Result<Option<Order>, String> {
    match serde_json::from_slice(question).map_err(|error| error.to_string())? {
        Question::Order { order } => Ok(Some(order)),
        Question::Status | Question::Flows | Question::Why { .. } => Ok(None),
    }
}

/// A question of the control socket that gives this order.
pub fn question(order: &Order) -> Vec<u8> {
    let question = Question::Order { order: order.clone() };
    serde_json::to_vec(&question).expect("an order has finite numbers")
}

/// The configuration of this text.
///
/// # Errors
/// It says something wrong: where, and what to do.
pub fn config(text: &str) -> Result<Config, ConfigError> {
    Config::parse(Path::new("agent.toml"), text)
}

/// What [`check`](crate::check) says of a configuration.
///
/// # Errors
/// It names something that cannot be used.
pub fn check(config: &Config) -> Result<Checked, Error> {
    checked(Path::new("agent.toml"), config)
}

/// The orders in a file of this text, and the text that an agent writes which has them.
///
/// # Errors
/// It is none: one line that tells why.
pub fn orders(text: &str) -> Result<(Vec<HoldStatus>, String), String> {
    let holds = file::parse(text, NOW, WALL_S)?;
    let again = file::text(&holds, NOW, WALL_S).map_err(|error| error.to_string())?;
    Ok((holds.status(NOW), again))
}

/// The request in a datagram of a steerer, as the loader would write it itself, where it may be carried
/// out under this configuration.
///
/// # Errors
/// It is none, or may not: one line that tells why.
pub fn loader(config: &str, datagram: &[u8]) -> Result<String, String> {
    let grounds = Grounds::parse(Path::new("agent.toml"), config).map_err(|e| e.to_string())?;
    let request = protocol::decode(datagram)?;
    Allowed::new(&grounds).check(&request, false)?;
    serde_json::to_string(&request).map_err(|e| e.to_string())
}

/// An agent without connections.
#[derive(Debug)]
pub struct Agent(RefCell<Core<Nothing>>);

impl Agent {
    /// It runs by this configuration.
    pub fn new(config: Config) -> Self {
        Self(RefCell::new(Core::new(Nothing, config, NOW)))
    }

    /// What the control socket answers to these bytes, which arrive in pieces of this size.
    pub fn ask(&self, bytes: &[u8], piece: usize) -> Vec<u8> {
        let client = Client { left: bytes, piece, answer: Vec::new() };
        let reply = |question: &[u8], _: &Client<'_>| control::reply(question, |q| self.answer(&q));
        serve::converse(client, &control::TERMS, reply).answer
    }

    fn answer(&self, question: &Question) -> Result<serde_json::Value, String> {
        let core = &mut *self.0.borrow_mut();
        let told = match question {
            // Of these a client chooses nothing.
            Question::Status => return Ok(core.reports().into()),
            Question::Flows => serde_json::to_value(core.flows(NOW)),
            Question::Why { flow } => serde_json::to_value(core.why(flow, NOW)?),
            Question::Order { order } => serde_json::to_value(core.operate(order, "root", NOW)?),
        };
        told.map_err(|error| error.to_string())
    }

    /// The orders in force, and the text of their file.
    pub fn orders(&self) -> (Vec<HoldStatus>, String) {
        let core = self.0.borrow();
        let text = file::text(core.holds(), NOW, WALL_S).expect("orders have finite numbers");
        (core.holds().status(NOW), text)
    }

    /// Looks at everything so much later; gives the share of networks to which the rules apply.
    pub fn later(&self, seconds: u64, client: IpAddr) -> f64 {
        let now = NOW + trimtab_units::Duration::from_secs(seconds);
        let core = &mut *self.0.borrow_mut();
        core.run(now);
        core.comparing().of(client, now);
        core.comparing().rollout(now).map_or(1.0, |rollout| rollout.share)
    }
}

/// Bytes that arrive piece by piece, and the answer to them.
struct Client<'a> {
    left: &'a [u8],
    piece: usize,
    answer: Vec<u8>,
}

impl Read for Client<'_> {
    fn read(&mut self, into: &mut [u8]) -> Io<usize> {
        let length = into.len().min(self.piece.max(1));
        self.left.read(&mut into[..length])
    }
}

impl Write for Client<'_> {
    fn write(&mut self, bytes: &[u8]) -> Io<usize> {
        self.answer.write(&bytes[..bytes.len().min(self.piece.max(1))])
    }

    fn flush(&mut self) -> Io<()> {
        Ok(())
    }
}

/// A datapath without connections.
#[derive(Debug)]
struct Nothing;

/// None of its connections.
#[derive(Debug)]
enum NoLink {}

fn refused<T>() -> Result<T, Refusal> {
    Err(Refusal::Refused("there is no kernel".into()))
}

impl Datapath for Nothing {
    type Link = NoLink;

    const ALGORITHMS: &'static [Algorithm] = ALGORITHMS;

    fn links(&self) -> Vec<NoLink> {
        Vec::new()
    }

    fn link(&self, _: u32) -> Option<NoLink> {
        None
    }

    fn add_trees(&self, _: &Trees<'_>) -> Result<f64, Refusal> {
        refused()
    }

    fn set_towards(&self, _: &Towards, _: &[(String, f64)]) -> Result<(), Refusal> {
        refused()
    }

    fn remove_towards(&self, _: &Towards) -> Result<(), Refusal> {
        refused()
    }

    fn towards(&self) -> Vec<Towards> {
        Vec::new()
    }

    fn tell_apart(&self, _: By) -> Result<(), Refusal> {
        refused()
    }

    fn set_default(&self, _: Algorithm, _: &str, _: f64) -> Result<f64, Refusal> {
        refused()
    }
}

impl Link for NoLink {
    fn identity(&self) -> &Identity {
        match *self {}
    }

    fn algorithm(&self) -> Algorithm {
        match *self {}
    }

    fn cookie(&self) -> Option<u64> {
        match *self {}
    }

    fn is_closing(&self) -> bool {
        match *self {}
    }

    fn acks(&self) -> Option<u64> {
        match *self {}
    }

    fn begin(&mut self, _: Time) -> bool {
        match *self {}
    }

    fn report(&mut self, _: Time, _: Factors) -> Option<Report> {
        match *self {}
    }

    fn totals(&self) -> Option<Totals> {
        match *self {}
    }

    fn set(&self, _: &str, _: f64) -> Result<f64, Refusal> {
        match *self {}
    }

    fn set_of(&self, _: Algorithm, _: &str, _: f64) -> Result<f64, Refusal> {
        match *self {}
    }

    fn alarm(&self) -> Option<Alarm> {
        match *self {}
    }

    fn knob(&self, _: &str) -> Result<f64, Refusal> {
        match *self {}
    }

    fn switch(&self, _: Algorithm, _: Option<&[(&str, f64)]>, _: Switch) -> Result<(), Refusal> {
        match *self {}
    }

    fn switching(&self) -> Option<Switching> {
        match *self {}
    }
}

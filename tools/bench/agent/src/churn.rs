//! Thousands of short connections a second: what they cost with the agent, compared with the kernel's
//! own CUBIC in the same run, and whether anything of them stays.
//!
//! They are within the host, so all that a connection costs, of both ends, is processor time of the
//! process that opens and serves it.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_tcp_congestion;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use trimtab_kernel::{Algorithm, Options};

use crate::Figure;
use crate::load::{Agent, Load, LoadError, SUFFIX, system};
use crate::process::{cpu_s, memory_mb};

const PORT: u16 = 7261;
/// What a server says on each: a small page.
const ANSWER: usize = 3000;
/// Each algorithm in turn runs so long, so that a machine that others use is as busy for all.
const TURN: Duration = Duration::from_secs(5);
/// The kernel and the agent have seen the end of all after this.
const SETTLE: Duration = Duration::from_secs(2);
const CLIENTS: u64 = 4;
/// Servers' addresses: as many as a client has ports would be in TIME-WAIT within seconds.
const ADDRESSES: u64 = 200;

/// What a turn came to.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Turn {
    connections: u64,
    cpu_s: f64,
    seconds: f64,
}

/// The process of a turn: opens and serves so many connections a second, and prints what that took.
pub(crate) fn turn(algorithm: &str, rate: u64) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    set_tcp_congestion(&listener, algorithm)?;
    let serve = move || {
        // Until the process ends.
        for stream in listener.incoming().flatten() {
            let _ = (&stream).write_all(&[7; ANSWER]);
        }
    };
    std::thread::spawn(serve);
    let done = AtomicU64::new(0);
    let start = Instant::now();
    let open = |client: u64| -> io::Result<()> {
        let mut answer = Vec::with_capacity(ANSWER);
        for nth in (client..).step_by(CLIENTS as usize) {
            let at = Duration::from_secs_f64(nth as f64 / rate as f64);
            if at >= TURN {
                break;
            }
            std::thread::sleep(at.saturating_sub(start.elapsed()));
            let address = Ipv4Addr::new(127, 0, 1, (1 + nth % ADDRESSES) as u8);
            answer.clear();
            TcpStream::connect((address, PORT))?.read_to_end(&mut answer)?;
            if answer.len() != ANSWER {
                return Err(io::Error::other("an answer was cut short"));
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|nth| scope.spawn(move || open(nth))).collect();
        let ended = clients
            .into_iter()
            .map(|client| client.join().map_err(|_| io::Error::other("a thread ended early"))?);
        ended.collect::<io::Result<()>>()
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let cpu_s = cpu.tv_sec as f64 + cpu.tv_nsec as f64 * 1e-9;
    let turn = Turn { connections: done.load(Ordering::Relaxed), cpu_s, seconds };
    println!("{}", serde_json::to_string(&turn)?);
    Ok(())
}

fn run(algorithm: &str, rate: u64) -> Result<Turn, LoadError> {
    let what = "open connections";
    let output = std::env::current_exe()
        .and_then(|me| {
            let arguments = ["turn", algorithm, &rate.to_string()];
            Command::new(me).args(arguments).stderr(Stdio::inherit()).output()
        })
        .map_err(system(what))?;
    let turn = serde_json::from_slice(&output.stdout);
    turn.map_err(|e| LoadError::System { what, source: io::Error::other(e) })
}

/// Runs turns for so many seconds of each algorithm.
pub(crate) fn figures(load: &Load, rate: u64) -> Result<Vec<Figure>, LoadError> {
    let agent = Agent::start(load, PORT, |mut command| command.spawn())?;
    let pid = agent.pid();
    let gone = || LoadError::Agent("it has ended".to_owned());
    let options = Options { suffix: SUFFIX.to_owned(), ..Options::default() };
    let ours = [Algorithm::Cubic, Algorithm::Copa].map(|one| options.name_of(one));
    // What the agent takes at first is no leak.
    run(&ours[0], rate)?;
    std::thread::sleep(SETTLE);
    let private_before = memory_mb(pid, "RssAnon").ok_or_else(gone)?;
    let with_maps_before = agent.with_maps_mb();
    let rounds = (load.seconds as f64 / TURN.as_secs_f64()).ceil() as usize;
    let (mut plain_us, mut ratios, mut rates) = (Vec::new(), [Vec::new(), Vec::new()], Vec::new());
    let mut of_agent_us = Vec::new();
    for _ in 0..rounds {
        let plain = run("cubic", rate)?;
        let each =
            |turn: &Turn, more_s: f64| (turn.cpu_s + more_s) / turn.connections.max(1) as f64 * 1e6;
        plain_us.push(each(&plain, 0.0));
        for (name, ratios) in ours.iter().zip(&mut ratios) {
            let before = cpu_s(pid).ok_or_else(gone)?;
            let turn = run(name, rate)?;
            let agent_s = cpu_s(pid).ok_or_else(gone)? - before;
            ratios.push(each(&turn, agent_s) / each(&plain, 0.0));
            of_agent_us.push(agent_s / turn.connections.max(1) as f64 * 1e6);
            rates.push(turn.connections as f64 / turn.seconds);
        }
    }
    std::thread::sleep(SETTLE);
    let status = agent.status()?;
    let private = memory_mb(pid, "RssAnon").ok_or_else(gone)?;
    let figure = |name, value, unit| Figure { name, value, unit, limit: None };
    let limited = |name, value, unit, limit| Figure { name, value, unit, limit: Some(limit) };
    let of = status.datapath;
    let [cubic, copa] = ratios;
    Ok(vec![
        figure("connections a second", median(rates), ""),
        figure("processor time of each, kernel's CUBIC", median(plain_us), "us"),
        limited("the same with trimtab_cubic and the agent", median(cubic), "x", 1.1),
        figure("the same with trimtab_copa and the agent", median(copa), "x"),
        figure("of this the agent's own", median(of_agent_us), "us"),
        figure("connections too short for a slot", of.brief as f64, ""),
        figure("connections that found no slot", of.slotless as f64, ""),
        limited("slots that are taken after all ended", of.taken as f64, "", 1.0),
        figure("connections without a close event", of.reaped as f64, ""),
        figure("events that found no room", of.lost_events as f64, ""),
        limited("memory of the agent, more than at first", private - private_before, "MB", 5.0),
        figure(
            "the same with the kernel's maps",
            agent.with_maps_mb().zip(with_maps_before).map_or(f64::NAN, |(now, then)| now - then),
            "MB",
        ),
    ])
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

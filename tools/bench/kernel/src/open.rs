//! Throughput over a veth pair, where nothing but the processor limits it.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use trimtab_kernel::Algorithm;

use crate::flow::Flow;
use crate::hosts::{Host, Hosts};
use crate::table::{Figure, Target, median};
use crate::{BenchError, Loaded, system};

const WARM_UP: Duration = Duration::from_millis(500);
const TIME: Duration = Duration::from_secs(2);

/// Gbit/s.
fn one(hosts: &Hosts, algorithm: &str, port: u16) -> Result<f64, BenchError> {
    let flow = Flow::start(hosts, algorithm, port, |address| {
        let socket = hosts.thread(Host::Router, move || TcpStream::connect(address))?.join();
        let socket = socket.unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()));
        socket.map_err(system("connect over the veth pair"))
    })?;
    thread::sleep(WARM_UP);
    let (begin, bytes) = (Instant::now(), flow.received());
    thread::sleep(TIME);
    Ok((flow.received() - bytes) as f64 * 8e-9 / begin.elapsed().as_secs_f64())
}

pub(crate) fn measure(
    hosts: &Hosts,
    loaded: &Loaded,
    rounds: usize,
) -> Result<Vec<Figure>, BenchError> {
    let names = [
        "bbr".to_owned(),
        "cubic".to_owned(),
        loaded.name_of(Algorithm::Bbr),
        loaded.name_of(Algorithm::Copa),
        loaded.name_of(Algorithm::Cubic),
    ];
    let mut rates = [const { Vec::new() }; 5];
    let mut ratios = [const { Vec::new() }; 5];
    let mut ports = 7200..;
    for round in 0..rounds.max(1) {
        eprintln!("round {} of {rounds} without a bottleneck", round + 1);
        let mut bbr = 1.0;
        for (i, name) in names.iter().enumerate() {
            // Another port each time: the last one may still be closing.
            let rate = one(hosts, name, ports.next().unwrap_or(7199))?;
            if i == 0 {
                bbr = rate;
            }
            rates[i].push(rate);
            ratios[i].push(rate / bbr);
        }
    }
    let mut figures = Vec::new();
    for ((name, rates), ratios) in names.iter().zip(rates).zip(ratios) {
        let short = name.trim_end_matches("_z");
        figures.push(Figure::new(
            format!("{short}: without a bottleneck"),
            median(rates),
            "Gbit/s",
        ));
        if short.starts_with("trimtab") {
            let ratio = Figure::new(format!("{short}: vs. bbr"), median(ratios), "x");
            figures.push(ratio.target(Target::AtLeast(0.95)));
        }
    }
    Ok(figures)
}

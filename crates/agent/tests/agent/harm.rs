//! The safe fallback over emulated links: a buffer that is too short for what a rule sets, and a
//! link that loses packets of every sender.

use std::thread;
use std::time::Instant;

use trimtab_agent::{FlowView, Standing};
use trimtab_emu::Topology;
use trimtab_net::LossConfig;

use crate::common::{self, need_kernel};
use crate::setup::{Agent, Setup};
use crate::transfer::{download, link};

/// A download from this port by Copa, under an agent that sets this δ, until the topology is gone.
fn copa(topology: &Topology, setup: &Setup, port: u16, delta: f64) -> Agent {
    setup.configure("", &format!("[[rule]]\nport = {port}\nknobs = {{ delta = {delta} }}\n"));
    let agent = setup.start_at(topology.server());
    download(topology, &setup.algorithm(), port);
    agent
}

/// Looks every quarter of a second until the connection stands like this; the mean of the losses that were seen, and
/// how long it took.
fn until(agent: &Agent, port: u16, is_over: impl Fn(&FlowView, f64) -> bool) -> (f64, f64) {
    let (start, mut losses) = (Instant::now(), Vec::new());
    loop {
        thread::sleep(std::time::Duration::from_millis(250));
        let took = start.elapsed().as_secs_f64();
        assert!(took < 40.0, "it never comes to that: {losses:?}\n{}", agent.log());
        let Some(flow) = agent.flow(port) else { continue };
        losses.extend(flow.loss);
        if is_over(&flow, took) {
            return (losses.iter().sum::<f64>() / losses.len().max(1) as f64, took);
        }
    }
}

/// Copa with a δ of 0.04 keeps 31 packets waiting (Copa §3: 1.25/δ), of which the buffer holds 20.
/// It lost some 30 % for as long as it lived.
#[test]
fn a_fixed_knob_that_overflows_a_short_buffer_is_taken_back() {
    need_kernel!();
    let setup = Setup::new("_0");
    let topology = link(20, LossConfig::None);
    let agent = copa(&topology, &setup, 7191, 0.04);
    let (loss, took) = until(&agent, 7191, |flow, _| flow.standing == Standing::Resting);
    // What is listed at first was measured before.
    until(&agent, 7191, |_, took| took > 3.0);
    let (rest, _) = until(&agent, 7191, |flow, took| {
        assert_eq!((flow.standing, flow.delta), (Standing::Resting, Some(0.5)), "{flow:?}");
        took > 8.0
    });
    println!("{:.1}% lost for {took:.1} s, then {:.1}%", loss * 100.0, rest * 100.0);
    assert!(rest < 0.03 && rest < loss / 2.0, "{loss} before, {rest} after");
}

/// 8 % are lost by every sender: one rest finds that out, and then the rule is in force again.
#[test]
fn losses_of_the_link_itself_are_no_harm() {
    need_kernel!();
    let setup = Setup::new("_1");
    let topology = link(200, LossConfig::Independent(0.08));
    let agent = copa(&topology, &setup, 7192, 0.2);
    let forgiven = || agent.log().contains("it suffers as much without steering");
    let (_, took) = until(&agent, 7192, |flow, _| forgiven() && flow.standing == Standing::Set);
    let (loss, _) = until(&agent, 7192, |flow, took| {
        assert_eq!((flow.standing, flow.delta), (Standing::Set, Some(0.2)), "{flow:?}");
        took > 15.0
    });
    println!("forgiven after {took:.1} s; then {:.1}% lost, and it was left alone", loss * 100.0);
}

//! A live connection whose algorithm changes each second. The only test here, since it counts what
//! is allocated. `./dev bench quic switches` does the same for ten minutes.

mod support;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use support::{Setting, switches};
use trimtab_noq::units::{Duration, Rate};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes that are allocated and not freed.
fn live() -> f64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as f64 - stats.bytes_deallocated as f64
}

#[test]
fn changes_each_second_neither_stall_nor_lose_nor_leak() {
    let (rate, rtt) = (Rate::from_mbps(10.0), Duration::from_millis(40));
    let setting = Setting { rate, rtt, ..Setting::default() };
    let schemes = ["cubic", "bbr", "copa"];
    let mut memory = Vec::with_capacity(45);
    let switched = switches::in_turn(&schemes, &setting, 45, |_| memory.push(live()));
    let alone = schemes.map(|scheme| switches::in_turn(&[scheme], &setting, 15, |_| ()).goodput);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (early, late) = (mean(&memory[..15]), mean(&memory[30..]));
    println!("{switched:?}, alone {alone:?}, {early:.0} and {late:.0} bytes");
    assert_eq!(switched.switches, 45);
    // A packet that is sent again takes two round trips and a full queue.
    assert!(switched.longest_wait < rtt * 3);
    let least = *alone.iter().min().unwrap();
    assert!(switched.goodput > least.mul_f64(0.9), "{:?} vs. {least:?}", switched.goodput);
    assert!(switched.worst_loss() <= 0.01);
    assert!(late < early * 1.02, "{early} and then {late} bytes");
}

//! What a running world takes: memory, and time to copy.

use std::alloc::System;
use std::hint::black_box;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};
use trimtab_sim::{World, WorldConfig};
use trimtab_units::{Bytes, Duration, Time};

use crate::processor;

/// Counts what is allocated; an addition or two per allocation, which the simulator hardly makes once
/// it runs.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What a world takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footprint {
    /// Bytes that it holds after the run. Its queues keep the room that they once needed, so this is
    /// what it needed at most, too.
    pub(crate) held: Bytes,
    /// Allocations per packet in the last tenth of the run.
    pub(crate) allocations_per_packet: f64,
}

fn held(stats: &Stats) -> usize {
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// Builds a world, runs it until `end`, and counts.
pub(crate) fn footprint(config: &WorldConfig, end: Time) -> (Footprint, World) {
    let whole = Region::new(ALLOCATOR);
    let mut world = World::new(config);
    world.run_until(end - end.since(Time::ZERO) / 10);
    let (before, tail) = (packets(&world), Region::new(ALLOCATOR));
    world.run_until(end);
    let last = tail.change();
    let calls = (last.allocations + last.reallocations) as f64;
    let footprint = Footprint {
        held: Bytes::new(held(&whole.change()) as u64),
        allocations_per_packet: calls / (packets(&world) - before).max(1) as f64,
    };
    (footprint, world)
}

/// Packets that were sent in a world and not dropped.
pub(crate) fn packets(world: &World) -> u64 {
    world.flows().iter().map(|f| f.sent().packets - f.received().dropped).sum()
}

/// Processor time to copy a world once, and to copy as many bytes in one block.
pub(crate) fn copies(world: &World) -> (std::time::Duration, std::time::Duration) {
    const TIMES: u32 = 50;
    let region = Region::new(ALLOCATOR);
    let copy = world.clone();
    let size = held(&region.change());
    drop(copy);
    let (clone, ()) = processor::timed(|| (0..TIMES).for_each(|_| drop(black_box(world.clone()))));
    let block = vec![1u8; size];
    let (floor, ()) = processor::timed(|| (0..TIMES).for_each(|_| drop(black_box(block.clone()))));
    (clone / TIMES, floor / TIMES)
}

/// How long the footprint's worlds run.
pub(crate) const WARM: Duration = Duration::from_secs(10);

//! One connection under load whose algorithm changes each second. Tests and `./dev bench quic`
//! include this file next to `world.rs`.
//!
//! The application writes far ahead: else BBR would find it limited by the application, and stay in
//! Startup.

use super::stack::units::{Duration, Rate, Time};
use super::world::{Setting, World};

/// Slow start and the first losses are over.
const WARM_UP: u64 = 5;
/// What the application writes ahead, in bandwidth-delay products.
const AHEAD: f64 = 10.0;
/// Between two changes.
const PERIOD: Duration = Duration::from_secs(1);

/// What a connection went through.
#[derive(Clone, Debug)]
pub(crate) struct Seconds {
    pub(crate) goodput: Rate,
    /// The longest that the client's application waited for data.
    pub(crate) longest_wait: Duration,
    /// The share of packets that the link dropped, in each second.
    pub(crate) loss: Vec<f64>,
    /// How often another algorithm took over.
    pub(crate) switches: u64,
}

impl Seconds {
    pub(crate) fn mean_loss(&self) -> f64 {
        self.loss.iter().sum::<f64>() / self.loss.len() as f64
    }

    pub(crate) fn worst_loss(&self) -> f64 {
        self.loss.iter().copied().fold(0.0, f64::max)
    }
}

/// So many seconds of a bulk transfer, whose handle sets the next of these schemes each second, in
/// turn. With one scheme nothing changes. `each` is called after each second.
pub(crate) fn in_turn(
    schemes: &[&str],
    setting: &Setting,
    seconds: u64,
    mut each: impl FnMut(u64),
) -> Seconds {
    let setting = Setting { ahead: AHEAD, ..setting.clone() };
    let mut world = World::new(schemes[0], &setting);
    world.run_until(Time::from_secs(WARM_UP));
    (world.read_at, world.longest_wait) = (world.now, Duration::ZERO);
    let (begun, received) = (world.now, world.received);
    let mut loss = Vec::with_capacity(seconds as usize);
    for (second, scheme) in (0..seconds).zip(schemes.iter().cycle().skip(1)) {
        world.handle.set_scheme(scheme).unwrap();
        let before = *world.link();
        world.run_until(world.now + PERIOD);
        let after = *world.link();
        let dropped = after.dropped().packets - before.dropped().packets;
        let sent = after.arrivals.packets - before.arrivals.packets;
        loss.push(dropped as f64 / sent.max(1) as f64);
        // The world keeps them for other tests.
        world.batches.clear();
        each(second + 1);
    }
    Seconds {
        goodput: (world.received - received) / world.now.since(begun),
        longest_wait: world.longest_wait.max(world.now.since(world.read_at)),
        loss,
        switches: world.handle.metrics().unwrap().switches,
    }
}

//! Mortise for other algorithms than Copa, on whole paths: next to the same algorithm unsteered.

use trimtab_apps::{App, BulkConfig};
use trimtab_net::{Capacity, LinkConfig, LossConfig, QueueConfig};
use trimtab_qoe::{Factors, Model};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_steer::{Steerer, Tuned, Tuner, TunerConfig};
use trimtab_units::{Duration, Rate, Time};

fn plain(name: &str) -> Control {
    Control::Algorithm { spec: name.parse().unwrap(), steerer: None }
}

fn steered(name: &str) -> Control {
    let model = Model::parse("T - 20*D", &[]).unwrap();
    let config = TunerConfig { model, factors: Factors::new(), sigma: 0.5 };
    let tuner = Tuner::new(Tuned::find(name).unwrap(), config);
    Control::Algorithm { spec: tuner.algorithm(), steerer: Some(Steerer::Tuner(Box::new(tuner))) }
}

/// A link of 24 Mbit/s and 40 ms.
struct Link {
    /// In packets; the path holds 80.
    buffer: u32,
    loss: f64,
}

/// Goodput of each bulk flow in Mbit/s over a minute, once they have been there for ten seconds.
fn goodput(link: &Link, controls: Vec<Control>) -> Vec<f64> {
    let bottleneck = LinkConfig::new(Capacity::Constant(Rate::from_mbps(24.0)))
        .queue(QueueConfig::drop_tail_packets(link.buffer))
        .loss(LossConfig::Independent(link.loss));
    let flow = |(i, control): (usize, Control)| FlowConfig {
        start: Time::ZERO + Duration::from_millis(137) * i as u64,
        seed: 1 + i as u64,
        ..FlowConfig::new(
            control,
            Transport::quic(),
            App::bulk(&BulkConfig::default()),
            Duration::from_millis(40),
        )
    };
    let flows = controls.into_iter().enumerate().map(flow).collect();
    let mut world = World::new(&WorldConfig { links: vec![(bottleneck, 1)], flows });
    let got = |w: &World| -> Vec<f64> {
        w.flows().iter().map(|f| f.received().goodput.bits() / 1e6).collect()
    };
    world.run_until(Time::from_secs(10));
    let before = got(&world);
    world.run_until(Time::from_secs(70));
    got(&world).iter().zip(before).map(|(a, b)| (a - b) / 60.0).collect()
}

/// Random losses hold them back: BBR 3 above its threshold of 2%, CUBIC and Vivace at any.
#[test]
fn on_a_lossy_link_it_gets_more() {
    let both = |name: &str, loss: f64, buffer: u32| {
        let of = |control| goodput(&Link { buffer, loss }, vec![control])[0];
        let (plain, steered) = (of(plain(name)), of(steered(name)));
        println!("{name}: {plain} Mbit/s, steered {steered}");
        steered / plain
    };
    assert!(both("bbr3", 0.03, 80) > 2.0);
    assert!(both("cubic", 0.005, 80) > 1.2);
    assert!(both("vivace", 0.03, 80) > 1.0);
}

/// Where nothing but the buffer drops, there is no more to be had, and it loses nothing by trying.
#[test]
fn on_a_clean_link_it_gets_no_less() {
    for name in Tuned::names() {
        for buffer in [20, 80, 320] {
            let of = |control| goodput(&Link { buffer, loss: 0.0 }, vec![control])[0];
            let (plain, steered) = (of(plain(name)), of(steered(name)));
            println!("{name}, {buffer} packets: {plain} Mbit/s, steered {steered}");
            assert!(steered > 0.95 * plain, "{name}, {buffer} packets: {plain} {steered}");
        }
    }
}

/// Next to two flows of its own kind that nobody steers, it takes no more than a bit above a third.
/// Not GCC, which is for media: three downloads over it share unevenly, steered or not.
#[test]
fn on_a_shared_link_it_leaves_the_others_their_share() {
    for name in Tuned::names().filter(|name| *name != "gcc") {
        let controls = vec![steered(name), plain(name), plain(name)];
        let shares = goodput(&Link { buffer: 80, loss: 0.0 }, controls);
        println!("{name}: {shares:?}");
        let others = 0.5 * (shares[1] + shares[2]);
        assert!((0.6..1.7).contains(&(shares[0] / others)), "{name}: {shares:?}");
    }
}

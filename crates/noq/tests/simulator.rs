//! noq with the adapter next to the simulator, whose transport has been validated: the same
//! algorithm over the same link gets about the same goodput.

mod support;

use support::{MarkConfig, Setting, World, simulated};
use trimtab_noq::units::{Rate, Time};

const FROM: Time = Time::from_secs(2);
const UNTIL: Time = Time::from_secs(22);

fn on_noq(cc: &str, setting: &Setting) -> Rate {
    let mut world = World::new(cc, setting);
    world.run_until(FROM);
    world.goodput_until(UNTIL)
}

#[test]
fn noq_gets_the_goodput_that_the_simulator_predicts() {
    let settings = [
        ("undisturbed", Setting::default()),
        ("1% loss", Setting { loss: 0.01, ..Setting::default() }),
        ("1% marks", Setting { mark: MarkConfig::Random(0.01), ..Setting::default() }),
    ];
    for (name, setting) in settings {
        for cc in ["newreno", "cubic", "bbr", "bbr3", "copa:mvfst", "vivace"] {
            let [mut ours, mut theirs] = [0.0; 2];
            for seed in 1..=2 {
                let setting = Setting { seed, ..setting.clone() };
                ours += on_noq(cc, &setting).mbps() / 2.0;
                theirs += simulated(cc, &setting, FROM, UNTIL).mbps() / 2.0;
            }
            println!("{name}, {cc}: {ours:.2} Mbit/s on noq, {theirs:.2} simulated");
            let ratio = ours / theirs;
            assert!((0.9..1.1).contains(&ratio), "{name}, {cc}: {ours} and {theirs}");
        }
    }
}

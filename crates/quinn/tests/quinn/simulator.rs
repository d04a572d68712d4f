//! quinn with the adapter next to the simulator, whose transport has been validated: the same
//! scheme over the same link gets about the same goodput. The band is wider than noq's, since quinn
//! lets out ten packets at once, and Vivace tries rates for a round trip each.

use trimtab_quinn::Config;
use trimtab_quinn::units::{Rate, Time};

use crate::support::{MODEL, MarkConfig, Setting, World, simulated};

const FROM: Time = Time::from_secs(2);
const UNTIL: Time = Time::from_secs(22);

fn on_quinn(scheme: &str, setting: &Setting) -> Rate {
    let config = Config::new(scheme).unwrap().with_model(MODEL).unwrap().with_seed(setting.seed);
    let mut world = World::with(&config, setting);
    world.run_until(FROM);
    world.goodput_until(UNTIL)
}

#[test]
fn quinn_gets_the_goodput_that_the_simulator_predicts() {
    let settings = [
        ("undisturbed", Setting::default()),
        ("1% loss", Setting { loss: 0.01, ..Setting::default() }),
        ("1% marks", Setting { mark: MarkConfig::Random(0.01), ..Setting::default() }),
    ];
    for (name, setting) in settings {
        for scheme in ["newreno", "cubic", "bbr", "bbr3", "copa:mvfst", "vivace", "mortise"] {
            let [mut ours, mut theirs] = [0.0; 2];
            for seed in 1..=2 {
                let setting = Setting { seed, ..setting.clone() };
                ours += on_quinn(scheme, &setting).mbps() / 2.0;
                theirs += simulated(scheme, &setting, FROM, UNTIL).mbps() / 2.0;
            }
            println!("{name}, {scheme}: {ours:.2} Mbit/s on quinn, {theirs:.2} simulated");
            let ratio = ours / theirs;
            assert!((0.85..1.15).contains(&ratio), "{name}, {scheme}: {ours} and {theirs}");
        }
    }
}

//! The models that ship can be read, and choose as their cards say.

use std::path::PathBuf;

use trimtab_steer::select::antelope::Boosted;
use trimtab_steer::select::{FEATURES, Model, PERIOD, State};

/// What both start with: the best single algorithm of the links that they learnt from.
const FIRST: &str = "copa:mvfst,min_rtt_window=30";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

fn model(name: &str) -> Model {
    let path = folder().join(name).with_extension("safetensors");
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Model::parse(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A connection of three megabits over 60 ms, with this share of random loss and no queue when it happens.
fn state(loss: f64, running: &str) -> State {
    let value = |name: &str| match name {
        "thpt_max" => 12e6,
        "rtt_min" => 0.06,
        "loss_rate" => loss,
        "rtt_rate" => 0.2,
        "rtt_var" => 1e-4,
        "cwnd" => 60e3,
        "goodput" => 0.5e6,
        "qws" => 0.01,
        "bytes_interval" => 3e6,
        "busy" => 0.2,
        "rtt_max_rate" => 0.8,
        "loss_rtt_rate" if loss > 0.0 => 0.2,
        "thpt_spread" => 0.3,
        "responses" => 100.0,
        "response_size" => 20e3,
        name if name == format!("cca_{running}") => 1.0,
        _ => 0.0,
    };
    core::array::from_fn(|i| FEATURES[i].scale.apply(value(FEATURES[i].name)))
}

#[test]
fn shipped_models_are_read_and_choose() {
    // Floo's candidates (section 4.1), Copa by another setting; and two settings of Copa.
    let ppo = ("floo", ["cubic", "bbr", "copa", "westwood"]);
    for (name, candidates) in [ppo, ("floo-counterfactual", ["cubic", "bbr", "copa", "copa"])] {
        let model = model(name);
        let names: Vec<&str> = model.candidates().iter().map(|c| c.algorithm().name).collect();
        assert_eq!(names, candidates, "{name}");
        assert!(model.candidates()[model.first()].is_same(&FIRST.parse().unwrap()), "{name}");
        assert_eq!(model.period(), PERIOD);
        // Random loss is no reason to slow down: those that take it for congestion are not chosen.
        for running in names.iter().take(3) {
            let choice = model.decide(&state(0.03, running)).unwrap();
            assert!(["bbr", "copa"].contains(&names[choice]), "{name}: {}", names[choice]);
        }
    }
}

#[test]
fn cards_name_the_files_that_they_describe() {
    for name in ["floo", "floo-counterfactual"] {
        let card = std::fs::read_to_string(folder().join(name).with_extension("md")).unwrap();
        assert!(card.contains(model(name).sha256()), "{name}.md is the card of another file");
        assert!(card.contains("python -m trimtab.train floo"), "the command");
    }
    let card = std::fs::read_to_string(folder().join("antelope.md")).unwrap();
    let models = Boosted::parse(&std::fs::read(folder().join("antelope.safetensors")).unwrap());
    assert!(card.contains(models.unwrap().sha256()), "antelope.md is the card of another file");
    assert!(card.contains("python -m trimtab.train antelope"), "the command");
}

//! The models that ship can be read, and choose as their cards say.

use std::path::PathBuf;

use sha2::{Digest, Sha256};
use trimtab_steer::muses::Lstm;
use trimtab_steer::select::antelope::Boosted;
use trimtab_steer::select::{FEATURES, Model, PERIOD, State};

/// What all start with: the best single algorithm of the links that they learnt from.
const FIRST: &str = "copa:mvfst,min_rtt_window=30";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

fn model(name: &str) -> Model {
    let path = folder().join(name).with_extension("safetensors");
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Model::parse(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A small generator of numbers from 0 to 1.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1u64 << 24) as f64
    }

    /// Between two numbers above 0, as likely in one octave as in another.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.next())
    }
}

/// A connection of any kind that pages and files make: 0.3 to 100 Mbit/s, 10 to 300 ms, with losses and queues.
fn state(numbers: &mut Numbers) -> State {
    let rate = numbers.between(0.3e6, 100e6);
    let (rtt, loss) = (numbers.between(0.01, 0.3), numbers.between(1e-5, 0.3));
    let (queue, variance) = (numbers.between(0.02, 5.0), numbers.between(1e-7, 0.1));
    let running = ["cubic", "bbr", "copa", "copa"][(numbers.next() * 4.0) as usize];
    let (window, goodput) = (numbers.between(5e3, 2e6), rate * numbers.between(0.02, 1.0));
    let (unsent, wait) = (numbers.between(1e3, 1e6), numbers.between(0.003, 5.0));
    let (growth, busy) = ((numbers.next() - 0.5) * 0.2, numbers.next());
    let queue_max = queue * numbers.between(1.0, 3.0);
    let loss_queue = queue_max * numbers.next();
    let spread = numbers.between(0.05, 1.0);
    let (responses, size) = (numbers.between(3.0, 300.0), numbers.between(5e3, 1e6));
    let value = |name: &str| match name {
        "thpt_max" => rate,
        "rtt_min" => rtt,
        "loss_rate" => (loss - 1e-4).max(0.0),
        "rtt_rate" => queue,
        "rtt_var" => variance,
        "cwnd" => window,
        "goodput" => goodput,
        "unsent_size" => (unsent - 1e4).max(0.0),
        "qws" => wait,
        "qws_gradient" => growth,
        "bytes_interval" => rate * 1.5 * busy,
        "busy" => busy,
        "rtt_max_rate" => queue_max,
        "loss_rtt_rate" => loss_queue,
        "thpt_spread" => spread,
        "responses" => responses,
        "response_size" => size,
        "rtt_path" => rtt,
        "queue_floor_rate" => queue / 3.0,
        "queue_quiet_rate" => queue / 5.0,
        "delivered" => 1.0 - loss,
        "rate_rtt" => growth * 5.0,
        name if name == format!("cca_{running}") => 1.0,
        _ => 0.0,
    };
    core::array::from_fn(|i| FEATURES[i].scale.apply(value(FEATURES[i].name)))
}

/// How often each candidate is chosen over 400 states. It is what these models chose when they were
/// made, so a model that reads its inputs otherwise fails here, and so does one that always chooses
/// the same.
#[test]
fn shipped_models_are_read_and_choose_as_they_did() {
    // Floo's candidates (section 4.1), Copa by another setting; and two settings of Copa.
    let four = ["cubic", "bbr", "copa", "westwood"];
    let copas = ["cubic", "bbr", "copa", "copa"];
    for (name, candidates, expected) in [
        ("floo", four, [0, 18, 371, 11]),
        ("floo-counterfactual", copas, [27, 11, 196, 166]),
        ("floo-p90", copas, [41, 28, 130, 201]),
    ] {
        let model = model(name);
        let names: Vec<&str> = model.candidates().iter().map(|c| c.algorithm().name).collect();
        assert_eq!(names, candidates, "{name}");
        assert!(model.candidates()[model.first()].is_same(&FIRST.parse().unwrap()), "{name}");
        assert_eq!(model.period(), PERIOD);
        let mut numbers = Numbers(1);
        let mut chosen = [0; 4];
        for _ in 0..400 {
            let state = state(&mut numbers);
            let choice = model.decide(&state, None).unwrap();
            for running in 0..4 {
                let knowing = model.decide(&state, Some(running));
                assert_eq!(knowing, Ok(choice), "{name} learnt by the names of algorithms alone");
            }
            chosen[choice] += 1;
        }
        assert_eq!(chosen, expected, "{name}");
    }
}

/// `floo:shared` knows which of its candidates runs. What it is not sure of it leaves as it is.
#[test]
fn the_policy_for_shared_links_chooses_as_it_did() {
    let model = model("floo-shared");
    let names: Vec<&str> = model.candidates().iter().map(|c| c.algorithm().name).collect();
    assert_eq!(names, ["copa", "copa", "copa", "bbr", "bbr3", "cubic"]);
    assert_eq!((model.first(), model.period()), (0, PERIOD));
    let mut numbers = Numbers(1);
    let (mut chosen, mut stays, mut declines) = ([0; 6], 0, 0);
    for number in 0..600 {
        let (state, running) = (state(&mut numbers), number % 6);
        match model.decide(&state, Some(running)) {
            Ok(choice) => {
                chosen[choice] += 1;
                stays += u32::from(choice == running);
            }
            Err(_) => declines += 1,
        }
    }
    assert_eq!((chosen, stays, declines), ([188, 284, 7, 36, 85, 0], 181, 0));
}

fn card(name: &str) -> String {
    std::fs::read_to_string(folder().join(name).with_extension("md")).unwrap()
}

#[test]
fn cards_name_the_files_that_they_describe() {
    for name in ["floo", "floo-counterfactual", "floo-p90", "floo-shared"] {
        let card = card(name);
        assert!(card.contains(model(name).sha256()), "{name}.md is the card of another file");
        assert!(card.contains("python -m trimtab.train floo"), "the command");
    }
    for name in ["antelope", "antelope-paper", "antelope-copa"] {
        let file = folder().join(name).with_extension("safetensors");
        let models = Boosted::parse(&std::fs::read(file).unwrap()).unwrap();
        let card = card(name);
        assert!(card.contains(models.sha256()), "{name}.md is the card of another file");
        assert!(card.contains("python -m trimtab.train antelope"), "the command");
    }
    let muses = card("muses");
    let lstm = Lstm::parse(&std::fs::read(folder().join("muses.safetensors")).unwrap());
    assert!(muses.contains(lstm.unwrap().sha256()), "muses.md is the card of another LSTM");
    for trees in ["muses.trees", "muses-wide.trees", "treeg.trees"] {
        let digest = Sha256::digest(std::fs::read(folder().join(trees)).unwrap());
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(muses.contains(&hex), "muses.md is the card of another {trees}");
    }
}

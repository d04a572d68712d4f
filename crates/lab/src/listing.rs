//! The schemes that there are, as JSON.

use serde_json::{Map, Value, json};
use trimtab_cc::{ALGORITHMS, Knob, Preset};
use trimtab_steer::scheme::SCHEMES;

/// Every algorithm and every other scheme, with presets and knobs: what `trimtab cc list --json`
/// prints, and `trimtab.schemes()` gives in Python.
pub fn listing() -> Value {
    let algorithms = ALGORITHMS.iter().map(|a| {
        json!({"name": a.name, "kind": "algorithm", "about": a.about, "source": a.source,
               "presets": a.presets.iter().map(preset).collect::<Vec<_>>(),
               "knobs": a.knobs.iter().map(knob).collect::<Vec<_>>()})
    });
    let others = SCHEMES.iter().map(|s| {
        json!({"name": s.name, "kind": s.role.name(), "about": s.about, "source": s.source,
               "presets": [], "knobs": s.settings.iter().map(|k| knob(k)).collect::<Vec<_>>()})
    });
    algorithms.chain(others).collect()
}

fn knob(k: &Knob) -> Value {
    json!({"name": k.name, "unit": k.unit, "min": k.min, "max": k.max, "default": k.default,
           "about": k.about})
}

fn preset(p: &Preset) -> Value {
    let knobs: Map<String, Value> =
        p.knobs.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    json!({"name": p.name, "about": p.about, "knobs": knobs})
}

#[cfg(test)]
mod tests {
    use trimtab_steer::scheme::Scheme;

    use super::*;

    #[test]
    fn what_is_listed_can_be_written() {
        let Value::Array(all) = listing() else { panic!("a list") };
        assert_eq!(all.len(), ALGORITHMS.len() + SCHEMES.len());
        let text = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
        for scheme in &all {
            let name = text(scheme, "name");
            assert!(!text(scheme, "about").is_empty(), "{name}");
            if text(scheme, "kind") != "algorithm" {
                continue;
            }
            assert!(name.parse::<Scheme>().is_ok(), "{name}");
            for preset in scheme["presets"].as_array().unwrap() {
                let with = format!("{name}:{}", text(preset, "name"));
                assert!(with.parse::<Scheme>().is_ok(), "{with}");
            }
            for knob in scheme["knobs"].as_array().unwrap() {
                let [min, max, default] =
                    ["min", "max", "default"].map(|key| knob[key].as_f64().unwrap());
                assert!(min <= default && default <= max, "{name}: {knob}");
            }
        }
    }
}

//! `trimtab cc list` and `trimtab app list`.

use serde_json::{Value, json};
use trimtab_cc::{ALGORITHMS, Knob};
use trimtab_lab::listing::listing;
use trimtab_lab::scenario::AppKind;
use trimtab_steer::scheme::{Role, SCHEMES};

use crate::{Failure, print};

pub(crate) fn schemes(as_json: bool) -> Result<(), Failure> {
    if as_json {
        return print_json(&listing());
    }
    let mut text = String::from("Algorithms: NAME, NAME:PRESET or NAME:KNOB=VALUE,…\n");
    for a in ALGORITHMS {
        text += &format!("\n  {}\n      {} ({})\n", a.name, a.about, a.source);
        for preset in a.presets {
            let knobs: Vec<String> = preset.knobs.iter().map(|(k, v)| format!("{k}={v}")).collect();
            text += &format!(
                "      {}:{}  {} ({})\n",
                a.name,
                preset.name,
                preset.about,
                knobs.join(", ")
            );
        }
        a.knobs.iter().for_each(|k| text += &knob_line(k));
    }
    let heads = [
        ("Learnt policies", Role::Learnt),
        ("Plug-ins: algorithms of your own", Role::Plugin),
        ("Steering", Role::Steering),
        ("Algorithms of QUIC stacks", Role::Stack),
        ("How connections start", Role::Start),
        ("Experiments", Role::Experiment),
        ("Bounds that no real sender can reach", Role::Bound),
    ];
    for (head, kind) in heads {
        text += &format!("\n{head}:\n");
        for s in SCHEMES.iter().filter(|s| s.role == kind) {
            text += &format!("\n  {}\n      {} ({})\n", s.name, s.about, s.source);
            s.settings.iter().for_each(|k| text += &knob_line(k));
        }
    }
    print(&text)
}

fn knob_line(k: &Knob) -> String {
    let unit = if k.unit == "1" { String::new() } else { format!(" {}", k.unit) };
    format!("      {} = {}{unit} (from {} to {}): {}\n", k.name, k.default, k.min, k.max, k.about)
}

fn print_json(listing: &Value) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(listing).unwrap_or_default();
    print(&format!("{text}\n"))
}

pub(crate) fn applications(as_json: bool) -> Result<(), Failure> {
    if as_json {
        return print_json(&AppKind::all().map(application).collect());
    }
    let mut text = String::from(
        "Applications: `--app NAME`, or `kind = \"NAME\"` and settings in a scenario's [[app]]\n",
    );
    for app in AppKind::all().map(AppKind::info) {
        text += &format!("\n  {}\n      {} ({})\n", app.name, app.about, app.source);
        text += &format!("      QoE: {}, or a formula\n", app.models.join(", "));
        for s in app.settings {
            let (wanted, default) = (s.form.wanted(), s.default);
            text += &format!("      {}: {}; {wanted} (default: {default})\n", s.name, s.about);
        }
    }
    print(&text)
}

fn application(kind: AppKind) -> Value {
    let app = kind.info();
    let settings = app.settings.iter().map(|s| {
        json!({"name": s.name, "takes": s.form.wanted(), "default": s.default, "about": s.about})
    });
    let settings: Vec<Value> = settings.collect();
    json!({"name": app.name, "about": app.about, "source": app.source, "qoe": app.models,
           "factors": app.factors, "settings": settings})
}

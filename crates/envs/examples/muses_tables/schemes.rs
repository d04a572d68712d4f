//! Who runs: the learnt policies, every algorithm and the omniscient sender.

use std::sync::Arc;

use trimtab_cc::ALGORITHMS;
use trimtab_cc::muses::Trees;
use trimtab_sim::Control;
use trimtab_steer::muses::{Lstm, Policy};

/// The baselines of short tables.
const FEW: [&str; 3] = ["cubic", "bbr", "copa:mvfst"];

/// A file of the folder of the models.
pub(crate) fn read(models: &str, file: &str) -> Vec<u8> {
    let path = format!("{models}/{file}");
    std::fs::read(&path).unwrap_or_else(|problem| panic!("{path}: {problem}"))
}

/// The trees of a file of that folder.
pub(crate) fn trees(models: &str, file: &str) -> Trees<'static> {
    Trees::parse(read(models, file).leak()).expect("a sound model")
}

/// The policies of the models in this folder, with the guard, and all algorithms. With `few` it is
/// [`FEW`] algorithms, and also the trees without the guard.
pub(crate) fn schemes(models: &str, few: bool) -> Vec<(String, Control)> {
    let trees = |file: &str| Policy::Trees(trees(models, file));
    let lstm = Lstm::parse(&read(models, "muses.safetensors")).expect("a sound model");
    let safe = "copa:mvfst".parse().ok();
    let mut all: Vec<(String, Control)> = [
        ("muses", trees("muses.trees")),
        ("muses:wide", trees("muses-wide.trees")),
        ("treeg", trees("treeg.trees")),
        ("muses:lstm", Policy::Lstm(Arc::new(lstm))),
    ]
    .map(|(name, policy)| (name.to_owned(), Control::Muses { policy, safe }))
    .into();
    let rules: Vec<&str> = if few {
        let unguarded = Control::Muses { policy: trees("muses.trees"), safe: None };
        all.insert(1, ("muses:safe=none".to_owned(), unguarded));
        FEW.into()
    } else {
        ALGORITHMS.iter().map(|algorithm| algorithm.name).chain(["copa:mvfst"]).collect()
    };
    all.extend(rules.into_iter().map(|name| {
        let spec = name.parse().expect("it is in the table");
        (name.to_owned(), Control::Algorithm { spec, steerer: None })
    }));
    all.push(("omniscient".to_owned(), Control::Omniscient));
    all
}

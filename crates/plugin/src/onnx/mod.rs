//! ONNX models: once per monitor interval a model sees the last observations, and its first output
//! changes the rate or the window.
//!
//! The file of settings next to the model says which observations, how many intervals of them, and
//! what the output means (`settings.rs`). The runtime is rten. It runs operators on a thread pool
//! of its own. A thread of a comparison that waited there would take up another run meanwhile, and
//! that one a third. So each model has one thread (`runtime.rs`), which is the pool as well.

mod runtime;
mod settings;

use std::collections::VecDeque;

use trimtab_cc::{Config, Plugin};
use trimtab_steer::scheme::PluginSettings;

use crate::decided::{Answer, Decided, Policy, Terms};
use crate::error::Problem;
use crate::fault::Fault;
use crate::monitor::Observation;
use crate::{Loaded, stem};
use runtime::Runtime;
use settings::Settings;

/// A model that is loaded.
#[derive(Debug)]
struct Model {
    runtime: Runtime,
    settings: Settings,
    terms: Terms,
}

/// Loads a model and its settings, and asks it once.
pub(crate) fn load(settings: &PluginSettings, fault: &'static Fault) -> Result<Loaded, Problem> {
    let bytes = std::fs::read(&settings.path);
    let bytes = bytes.map_err(|cause| Problem::File { path: settings.path.clone(), cause })?;
    let name = stem(settings);
    let settings = Settings::read(&settings.sibling("toml"))?;
    let runtime = Runtime::start(bytes, settings.inputs())?;
    let terms = Terms { every: settings.every, knobs: &[], manages_recovery: true, fault };
    let model: &'static Model = Box::leak(Box::new(Model { runtime, settings, terms }));
    let build = move |config: &Config| -> Box<dyn Plugin> {
        let policy = Ok(Asked { model, history: VecDeque::new() });
        Box::new(Decided::new(policy, &model.terms, config))
    };
    let about = "an ONNX model".to_owned();
    Ok(Loaded { name, about, knobs: Vec::new(), forks: true, build: Box::new(build) })
}

/// A connection's history, for its model.
#[derive(Clone, Debug)]
struct Asked {
    model: &'static Model,
    /// What was seen in each of the last intervals, the oldest first.
    history: VecDeque<Vec<f32>>,
}

impl Policy for Asked {
    fn on_interval(&mut self, seen: &Observation) -> Result<Answer, String> {
        let settings = &self.model.settings;
        let newest = settings.scaled(seen);
        if self.history.is_empty() {
            // A connection that has just begun has always been like this.
            self.history.resize(settings.history, newest.clone());
        }
        self.history.pop_front();
        self.history.push_back(newest);
        let input = self.history.iter().flatten().copied().collect();
        let output = self.model.runtime.ask(input)?;
        Ok(settings.output.answer(output, seen))
    }
}

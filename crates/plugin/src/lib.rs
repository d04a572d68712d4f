//! Congestion control algorithms from outside: `plugin:./mine.so`, `python:mine.py`,
//! `onnx:mine.onnx`.
//!
//! [`load`] reads what a scheme names and gives a [`Plug`], whose spec runs like that of a built-in
//! algorithm. Mistakes show when it is loaded, or in the first run: an algorithm cannot return an
//! error to its transport, so it keeps its last window, notes its [`Fault`], and the host asks
//! [`Plug::check`] after each run.
//!
//! Read first: `include/trimtab_plugin.h`, which is the interface of a library; `decided.rs`, which
//! is what Python classes and models share. A new kind is a file with a `load`, and a line in
//! [`load`](fn@load).

mod answer;
mod c;
mod decided;
mod error;
mod fault;
mod monitor;
mod onnx;
mod python;

use trimtab_cc::{Config, KNOBS_MAX, Knob, Outside, Plugin, Spec};
use trimtab_steer::scheme::{PluginKind, PluginSettings};

pub use c::{HEADER, RawAck, RawConfig, RawIdle, RawKnob, RawLoss, RawPlugin, RawSent, RawTimeout};
pub use error::{PluginError, Problem};
pub use fault::Fault;
pub use monitor::OBSERVATIONS;

/// An algorithm from outside that is loaded, for the life of the process.
#[derive(Clone, Copy, Debug)]
pub struct Plug {
    spec: Spec,
    fault: &'static Fault,
    forks: bool,
}

impl Plug {
    /// The algorithm with its knobs.
    pub fn spec(&self) -> Spec {
        self.spec
    }

    /// Whether a running instance can be copied. Bounds that try alternatives need it.
    pub fn forks(&self) -> bool {
        self.forks
    }

    /// Whether all instances have worked so far.
    ///
    /// # Errors
    /// The first that did not.
    pub fn check(&self) -> Result<(), PluginError> {
        self.fault.first().map_or(Ok(()), |what| Err(self.fault.error(Problem::Run(what))))
    }
}

/// What builds an instance for a connection.
type Build = dyn Fn(&Config) -> Box<dyn Plugin> + Send + Sync;

/// What a loader gives.
struct Loaded {
    name: String,
    about: String,
    knobs: Vec<Knob>,
    forks: bool,
    build: Box<Build>,
}

/// Loads the file of a scheme, which is called `label` in messages.
///
/// # Errors
/// The file is no plug-in of its kind, or has no such knob.
pub fn load(label: &str, settings: &PluginSettings) -> Result<Plug, PluginError> {
    let fault: &'static Fault = Box::leak(Box::new(Fault::new(label)));
    let loaded = match settings.kind {
        PluginKind::Library => c::load(settings, fault),
        PluginKind::Python => python::load(settings, fault),
        PluginKind::Onnx => onnx::load(settings, fault),
    };
    let loaded = loaded.map_err(|problem| fault.error(problem))?;
    if loaded.knobs.len() > KNOBS_MAX {
        return Err(fault.error(Problem::Knobs { count: loaded.knobs.len() }));
    }
    let Loaded { name, about, knobs, forks, build } = loaded;
    let outside = Outside::new((leak(name), leak(about)), knobs.leak(), build);
    let mut spec = Spec::plugged(Box::leak(Box::new(outside)));
    for (knob, value) in &settings.knobs {
        spec.set(knob, *value).map_err(|problem| fault.error(Problem::Knob(problem)))?;
    }
    Ok(Plug { spec, fault, forks })
}

/// A text for the life of the process: descriptions of algorithms are.
fn leak(text: String) -> &'static str {
    text.leak()
}

/// The name of a file without its ending, for plug-ins that have none of their own.
fn stem(settings: &PluginSettings) -> String {
    settings.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

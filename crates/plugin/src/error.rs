//! Why an algorithm from outside cannot be used. Every message tells the action, the cause and the
//! fix.

use std::io;
use std::path::PathBuf;

use trimtab_cc::{KNOBS_MAX, KnobError};

/// Why an algorithm from outside cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{label}: {problem}")]
pub struct PluginError {
    /// The scheme, as the user wrote it.
    pub(crate) label: String,
    /// What is wrong.
    #[source]
    pub(crate) problem: Problem,
}

/// What is wrong with an algorithm from outside.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file is not there, or not to be read.
    #[error("{} cannot be read: {cause}; give the path of a file that exists", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The system's loader refuses it.
    #[error(
        "the library cannot be loaded: {0}; build it with `cc -shared -fPIC -o mine.so mine.c` on \
         this machine"
    )]
    Library(libloading::Error),
    /// It lacks the function that describes the algorithm.
    #[error(
        "the library exports no function `trimtab_plugin`: define it as trimtab_plugin.h says \
         (`trimtab cc header` prints that file)"
    )]
    Symbol,
    /// The function that describes the algorithm returned nothing.
    #[error("trimtab_plugin() returned NULL: return the address of a struct trimtab_plugin")]
    NoTable,
    /// It is for another version of the interface.
    #[error(
        "the library is of version {found} of the plug-in interface, and this trimtab takes \
         version {wanted}: build it again with the header that `trimtab cc header` prints"
    )]
    Version {
        /// The library's.
        found: u32,
        /// Ours.
        wanted: u32,
    },
    /// Its table is of another size, though of the same version.
    #[error(
        "struct trimtab_plugin has {found} bytes in the library and {wanted} in this trimtab: set \
         .size to sizeof(struct trimtab_plugin), and build with the header that `trimtab cc \
         header` prints"
    )]
    Size {
        /// The library's.
        found: u32,
        /// Ours.
        wanted: usize,
    },
    /// A function that each algorithm needs is NULL.
    #[error("struct trimtab_plugin has NULL for {0}, which is not optional: give it a function")]
    Missing(&'static str),
    /// A knob is described wrongly.
    #[error(
        "knob number {number} is no knob: give it a name, and numbers with min <= default <= max"
    )]
    BadKnob {
        /// Its place, from 0.
        number: usize,
    },
    /// There are more knobs than a spec can set.
    #[error("it declares {count} knobs, and there may be {KNOBS_MAX}: declare fewer")]
    Knobs {
        /// How many.
        count: usize,
    },
    /// A knob cannot be set.
    #[error("{0}")]
    Knob(KnobError),
    /// Python could not be started.
    #[error(
        "{program} could not be started: {cause}; install Python 3, or set TRIMTAB_PYTHON to it"
    )]
    Python {
        /// The interpreter.
        program: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The Python file has no class that can be used, or an error of its own.
    #[error("{0}")]
    Class(String),
    /// A monitor interval is none.
    #[error("{0:?} is no interval: give e.g. \"1rtt\" or \"20ms\", of 1 ms or more")]
    Interval(String),
    /// The runtime refuses the model.
    #[error("the model cannot be used: {0}; export it as ONNX with static shapes and float32")]
    Model(String),
    /// The settings of a model are none.
    #[error("{}: {problem}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// An instance failed in a run.
    #[error("{0}")]
    Run(String),
}

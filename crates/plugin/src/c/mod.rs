//! Shared libraries behind the interface of `include/trimtab_plugin.h`.
//!
//! A library is never unloaded, and what it does to the process is the user's: a crash in it ends
//! the command.
#![expect(unsafe_code, reason = "the functions of a library are called")]

mod abi;
mod instance;

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;

use libloading::Library;
use trimtab_cc::{Config, Knob, Plugin};
use trimtab_steer::scheme::PluginSettings;

use abi::{ABI, MANAGES_RECOVERY, NEVER};
pub use abi::{RawAck, RawConfig, RawIdle, RawKnob, RawLoss, RawPlugin, RawSent, RawTimeout};
use instance::Instance;

use crate::error::Problem;
use crate::fault::Fault;
use crate::{Loaded, leak, stem};

/// The header that libraries are built with, for who has only the command.
pub const HEADER: &str = include_str!("../../include/trimtab_plugin.h");

/// The function that a library exports.
const SYMBOL: &[u8] = b"trimtab_plugin\0";

/// The functions of a library, those that are not optional without `Option`.
#[derive(Debug)]
struct Functions {
    raw: &'static RawPlugin,
    create: unsafe extern "C" fn(*const RawConfig) -> *mut c_void,
    destroy: unsafe extern "C" fn(*mut c_void),
    on_ack: unsafe extern "C" fn(*mut c_void, *const RawAck),
    on_loss: unsafe extern "C" fn(*mut c_void, *const RawLoss),
    on_timeout: unsafe extern "C" fn(*mut c_void, *const RawTimeout),
    window: unsafe extern "C" fn(*const c_void) -> f64,
    knobs: &'static [Knob],
    fault: &'static Fault,
}

// SAFETY: the table is constant data of the library, which the header demands.
unsafe impl Send for Functions {}
// SAFETY: as above.
unsafe impl Sync for Functions {}

/// Loads a library, and checks its table.
pub(crate) fn load(settings: &PluginSettings, fault: &'static Fault) -> Result<Loaded, Problem> {
    let raw = table(&settings.path)?;
    check_versions(raw)?;
    // SAFETY: it is of our version and size, and stays as long as the library, which is for ever.
    let raw: &'static RawPlugin = unsafe { &*raw };
    let knobs: &'static [Knob] = knobs(raw)?.leak();
    let functions: &'static Functions = Box::leak(Box::new(Functions::of(raw, knobs, fault)?));
    let build =
        move |config: &Config| -> Box<dyn Plugin> { Box::new(Instance::create(functions, config)) };
    let name = text(raw.name).unwrap_or_else(|| stem(settings));
    let about = text(raw.about).unwrap_or_else(|| "a shared library".to_owned());
    let forks = raw.clone.is_some();
    Ok(Loaded { name, about, knobs: knobs.to_vec(), forks, build: Box::new(build) })
}

/// The table of a library. Only its first two fields are known to be there.
fn table(path: &Path) -> Result<*const RawPlugin, Problem> {
    // The whole path, since the system's loader searches its own folders for a bare name.
    let path =
        path.canonicalize().map_err(|cause| Problem::File { path: path.to_owned(), cause })?;
    // SAFETY: its initialisers are the user's, as its functions are.
    let library = unsafe { Library::new(path) }.map_err(Problem::Library)?;
    // For ever: instances hold pointers into it.
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: a function of that name has this type, as the header says.
    let describe = unsafe { library.get::<unsafe extern "C" fn() -> *const RawPlugin>(SYMBOL) };
    let describe = describe.map_err(|_| Problem::Symbol)?;
    // SAFETY: it takes nothing.
    let raw = unsafe { describe() };
    if raw.is_null() { Err(Problem::NoTable) } else { Ok(raw) }
}

/// Whether the table is of our version and size. Nothing else of it is read before.
fn check_versions(raw: *const RawPlugin) -> Result<(), Problem> {
    // SAFETY: a table of any version begins with these two.
    let (abi, size) = unsafe { ((&raw const (*raw).abi).read(), (&raw const (*raw).size).read()) };
    let wanted = size_of::<RawPlugin>();
    if abi != ABI {
        Err(Problem::Version { found: abi, wanted: ABI })
    } else if size as usize != wanted {
        Err(Problem::Size { found: size, wanted })
    } else {
        Ok(())
    }
}

impl Functions {
    fn of(
        raw: &'static RawPlugin,
        knobs: &'static [Knob],
        fault: &'static Fault,
    ) -> Result<Self, Problem> {
        let need = Problem::Missing;
        if raw.next_timer.is_some() && raw.on_timer.is_none() {
            return Err(need("on_timer, which next_timer asks for"));
        }
        if !knobs.is_empty() && raw.set_knob.is_none() {
            return Err(need("set_knob, which its knobs need"));
        }
        Ok(Self {
            raw,
            create: raw.create.ok_or(need("create"))?,
            destroy: raw.destroy.ok_or(need("destroy"))?,
            on_ack: raw.on_ack.ok_or(need("on_ack"))?,
            on_loss: raw.on_loss.ok_or(need("on_loss"))?,
            on_timeout: raw.on_timeout.ok_or(need("on_timeout"))?,
            window: raw.window.ok_or(need("window"))?,
            knobs,
            fault,
        })
    }

    fn manages_recovery(&self) -> bool {
        self.raw.flags & MANAGES_RECOVERY != 0
    }
}

/// The knobs of a table.
fn knobs(raw: &RawPlugin) -> Result<Vec<Knob>, Problem> {
    if raw.knob_count == 0 {
        return Ok(Vec::new());
    }
    if raw.knobs.is_null() {
        return Err(Problem::Missing("knobs, of which knob_count says that there are some"));
    }
    if raw.knob_count as usize > trimtab_cc::KNOBS_MAX {
        return Err(Problem::Knobs { count: raw.knob_count as usize });
    }
    // SAFETY: there are so many, as the header demands.
    let all = unsafe { std::slice::from_raw_parts(raw.knobs, raw.knob_count as usize) };
    let read = |(number, knob): (usize, &RawKnob)| {
        let RawKnob { min, max, default_value: default, .. } = *knob;
        let is_knob = min.is_finite() && max.is_finite() && min <= default && default <= max;
        let name = text(knob.name).filter(|name| !name.is_empty() && is_knob);
        let name = name.ok_or(Problem::BadKnob { number })?;
        let unit = text(knob.unit).unwrap_or_else(|| "1".to_owned());
        let about = text(knob.about).unwrap_or_default();
        Ok(Knob { name: leak(name), unit: leak(unit), about: leak(about), min, max, default })
    };
    all.iter().enumerate().map(read).collect()
}

/// A text of a library; `None` for NULL.
fn text(chars: *const c_char) -> Option<String> {
    // SAFETY: it ends with a zero, as every text in C.
    (!chars.is_null()).then(|| unsafe { CStr::from_ptr(chars) }.to_string_lossy().into_owned())
}

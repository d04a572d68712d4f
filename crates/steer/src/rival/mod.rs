//! Rivals that a file makes what they are: algorithms of the crate `trimtab-cc` with the table or
//! the network that they go by.

mod aurora;
mod dna;
mod indigo;
mod leaky;

pub use aurora::{AuroraMlp, MoccMlp};
pub use dna::{DnaError, read_dna, write_dna};
pub use indigo::IndigoLstm;
pub use leaky::LeakyMlp;

use alloc::sync::Arc;
use alloc::vec::Vec;

use trimtab_cc::astraea::Astraea;
use trimtab_cc::aurora::Aurora;
use trimtab_cc::aurora::mocc::Mocc;
use trimtab_cc::indigo::Indigo;
use trimtab_cc::orca::Orca;
use trimtab_cc::remy::{Remy, Table};
use trimtab_cc::{Config, Controller, set_knob};

/// A rival that any number of connections can run.
#[derive(Clone, Debug)]
pub struct Rival {
    model: Model,
    knobs: Vec<(&'static str, f64)>,
}

/// What it goes by.
#[derive(Clone, Debug)]
pub enum Model {
    /// RemyCC's.
    Remy(Arc<Table>),
    /// Indigo's.
    Indigo(Arc<IndigoLstm>),
    /// Aurora's.
    Aurora(Arc<AuroraMlp>),
    /// MOCC's.
    Mocc(Arc<MoccMlp>),
    /// Orca's.
    Orca(Arc<LeakyMlp>),
    /// Astraea's.
    Astraea(Arc<LeakyMlp>),
}

impl Rival {
    /// A rival with these knobs set. A knob that it does not have, or a value out of its range,
    /// changes nothing.
    pub fn new(model: Model, knobs: Vec<(&'static str, f64)>) -> Self {
        Self { model, knobs }
    }

    /// A new connection.
    pub fn build(&self, limits: &Config) -> Controller {
        let mut cca: Controller = match &self.model {
            Model::Remy(table) => Remy::new(limits, table.clone()).into(),
            Model::Indigo(lstm) => Indigo::new(limits, lstm.network()).into(),
            Model::Aurora(mlp) => Aurora::new(limits, mlp.clone()).into(),
            Model::Mocc(mlp) => Mocc::new(limits, mlp.clone()).into(),
            Model::Orca(mlp) => Orca::new(limits, mlp.clone()).into(),
            Model::Astraea(mlp) => Astraea::new(limits, mlp.clone()).into(),
        };
        for &(name, value) in &self.knobs {
            let set = set_knob(&mut cca, name, value);
            debug_assert!(set.is_ok(), "checked where it was read");
        }
        cca
    }
}

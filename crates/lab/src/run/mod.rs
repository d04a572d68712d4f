//! One run: a job, carried out, and its record.
//!
//! How packets travel is the datapath's matter: a [`datapath::Datapath`], such as the [`simulator`], or
//! the kernel of the crate `trimtab-testbed`. Around each run goes one loop, [`course`], which leaves a
//! [`record::Measurement`]; of that [`record`] makes the record.

pub mod course;
pub mod datapath;
pub mod emulated;
pub mod links;
pub mod pool;
pub mod prepare;
pub mod record;
pub mod score;
pub mod selection;
pub mod simulator;
pub mod stack;
pub mod steering;
mod suits;
pub mod switches;

/// What a record keeps besides its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Every request or chunk.
    pub units: bool,
    /// The course over time.
    pub series: bool,
}

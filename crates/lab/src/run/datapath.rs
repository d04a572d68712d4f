//! What carries out the runs of a comparison.

use serde::{Deserialize, Serialize};

/// Where packets go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Datapath {
    /// The simulator: virtual time, the same record from the same job, always.
    #[default]
    Sim,
    /// TCP of this machine's kernel over an emulated link: real time, records that differ a little from one time to
    /// the next.
    Tcp,
}

impl Datapath {
    /// Its name on the command line and in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Tcp => "tcp",
        }
    }
}

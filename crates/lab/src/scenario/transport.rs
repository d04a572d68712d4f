//! What carries the data of a scenario's flows.

use serde::{Deserialize, Serialize};

/// A transport protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportKind {
    /// QUIC by its RFCs (9000, 9002): losses found by packet numbers, streams that do not wait for each
    /// other where the application has several, everything paced.
    #[default]
    Quic,
    /// QUIC as in the stack noq: its pacer lets out at once what it could have sent before, up to ten
    /// packets on slow links.
    Noq,
    /// TCP as in Linux: RACK-TLP and timeouts of 200 ms and more, one byte stream delivered in order,
    /// delayed acknowledgements, the window reset after idle times for algorithms that leave that to TCP.
    Tcp,
}

impl TransportKind {
    /// Its name on the command line and in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quic => "quic",
            Self::Noq => "noq",
            Self::Tcp => "tcp",
        }
    }

    /// Its name in text.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Quic => "QUIC",
            Self::Noq => "QUIC as in noq",
            Self::Tcp => "TCP",
        }
    }
}

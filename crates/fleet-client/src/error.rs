//! Why an engine does not answer, each with one message that says what to do.

use std::path::PathBuf;

/// Why the engine does not answer a client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens there.
    #[error(
        "no engine answers at {url}: {reason}. Start it with `trimtab engine run --config FILE`, or say where it is \
         with --engine or TRIMTAB_ENGINE"
    )]
    NoEngine {
        /// Where it was asked.
        url: String,
        /// What the system said.
        reason: String,
    },
    /// The engine refused the token.
    #[error(
        "the engine at {url} refuses this token: {reason}. Give one with --token-file or TRIMTAB_TOKEN; \
         `trimtab engine token add` on the engine's machine makes one"
    )]
    Token {
        /// Where it was asked.
        url: String,
        /// What it said.
        reason: String,
    },
    /// The engine refused the certificate of this client.
    #[error("the engine at {url} refuses this certificate: {reason}")]
    Certificate {
        /// Where it was asked.
        url: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The token or the certificate has expired, or the secret was replaced by another.
    #[error("the engine at {url} does not take this token or certificate any more: {reason}")]
    Expired {
        /// Where it was asked.
        url: String,
        /// What it said: whose token, since when, and what makes another secret.
        reason: String,
    },
    /// The engine has too much to do, or its store does not answer.
    #[error("the engine says to come back later: {0}")]
    Later(String),
    /// The engine does not let this token speak of this.
    #[error(
        "the engine at {url} refuses: {reason}. `trimtab engine token list` there says what each token may do"
    )]
    NotAllowed {
        /// Where it was asked.
        url: String,
        /// What it said.
        reason: String,
    },
    /// By the engine's clock, that of the asker is wrong, or was when it counted an interval.
    #[error("the engine refuses what this clock says: {0}")]
    Clock(String),
    /// The engine refused what was asked for.
    #[error("the engine refuses: {0}")]
    Refused(String),
    /// There is no token to ask with.
    #[error("no token: {0}")]
    NoToken(String),
    /// A file with the key of a client's certificate.
    #[error("cannot use the key in {}: {reason}; it should be in PEM", .path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file with the certificates to trust, or one's own.
    #[error("cannot use a certificate in {}: {reason}; it should be in PEM", .path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

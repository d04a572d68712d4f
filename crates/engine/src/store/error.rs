//! What can go wrong with a store.

/// Why a store does not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no more room.
    #[error(
        "no room left for {place}: nothing more is acknowledged until there is; make room on that disk, edges keep \
         what they could not send"
    )]
    Full {
        /// The file or server.
        place: String,
    },
    /// Too much waits already.
    #[error(
        "too many reports wait at {place}: edges keep what they could not send; is there an engine that takes them?"
    )]
    Busy {
        /// The server.
        place: String,
    },
    /// The file is damaged, or something else.
    #[error(
        "{place} is damaged or no store of the engine ({reason}): move it away to start anew, or \
         put a copy from before in its place"
    )]
    Damaged {
        /// The file.
        place: String,
        /// What was found.
        reason: String,
    },
    /// It was written by another version.
    #[error(
        "{place} has tables of version {found}, this engine writes version {known}: run the engine \
         that wrote it, or give this one another store"
    )]
    Version {
        /// The file or server.
        place: String,
        /// The version there.
        found: String,
        /// Ours.
        known: u32,
    },
    /// It was written by an older version, and not the engine itself opens it.
    #[error(
        "{place} has tables of version {found}, this program keeps version {known}: start the engine of \
         this version first (`trimtab engine run`), which brings them up to date"
    )]
    Older {
        /// The file or server.
        place: String,
        /// The version there.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Engines of an older version use it.
    #[error(
        "{place} has tables of version {found}, and {engines} use it: end those engines first, for \
         they do not work with tables of version {known}; edges keep what is in force meanwhile"
    )]
    InUse {
        /// The server.
        place: String,
        /// The version there.
        found: u32,
        /// Ours.
        known: u32,
        /// Their connections, and from where.
        engines: String,
    },
    /// It does not open or answer.
    #[error("cannot {what} {place}: {reason}")]
    Unusable {
        /// What was tried.
        what: &'static str,
        /// The file or server.
        place: String,
        /// What was said.
        reason: String,
    },
}

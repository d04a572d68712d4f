//! What tells one stack from another.

use std::fmt;

use crate::paths::Paths;

/// A stack, as an adapter for it declares it.
pub trait Stack: Clone + fmt::Debug + 'static {
    /// What the factory of the stack's controllers is made from: a newtype around [`Paths`], since
    /// the trait is the stack's and the factory's type has to be the adapter's.
    type Factory: From<Paths>;
    /// What it does.
    const TRAITS: &'static Traits;
}

/// What a stack does with a controller, and what it has of its own.
#[derive(Debug)]
pub struct Traits {
    /// How it times what it sends.
    pub pacing: Pacing,
    /// A congestion control of its own, by its path, for who wants that instead.
    pub own: &'static str,
}

/// How a stack times what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// It obeys the algorithm's rate.
    ByRate,
    /// It goes by window and round-trip time alone. So it gets a window that makes the algorithm's
    /// rate ([`Path::window`](crate::Path::window)).
    ByWindow,
}

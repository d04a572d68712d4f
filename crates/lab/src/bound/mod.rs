//! Upper bounds: what the best fixed setting, algorithm or course would have given.

pub(crate) mod selection;
pub(crate) mod setting;

//! LSTM models: any bytes are one that decides in every state, or an error with one line to show.

use std::sync::Arc;

use trimtab_cc::muses::{ACTIONS, SIGNALS};
use trimtab_steer::muses::{Lstm, Memory};

pub(crate) fn target(bytes: &[u8]) {
match Lstm::parse(bytes) {
    Ok(lstm) => {
        let mut memory = Memory::new(Arc::new(lstm));
        for x in [i16::MIN, -1, 0, 4000, i16::MAX] {
            let action = memory.decide(&[x; SIGNALS]);
            assert!(usize::from(action.number()) < ACTIONS);
        }
    }
    Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
}
}

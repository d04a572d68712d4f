//! Values with units: any text is a value or an error, and what we print of a value we read back.

use core::fmt::Display;
use core::str::FromStr;
use trimtab_units::{Bytes, Duration, Rate};

fn reads_back<T: FromStr<Err: Display> + Display>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            if let Err(error) = printed.parse::<T>() {
                panic!("{text:?} prints as {printed:?}, which does not parse: {error}");
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{text:?}"),
    }
}

pub(crate) fn target(text: &str) {
    reads_back::<Duration>(text);
    reads_back::<Bytes>(text);
    reads_back::<Rate>(text);
}

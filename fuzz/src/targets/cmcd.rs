//! What players send with their requests: any bytes are data that means the same when it is written
//! and read again, or an error of one short line.

use trimtab_cmcd::{Cmcd, CmcdError};

fn check(read: Result<Cmcd, CmcdError>) {
    match read {
        Ok(data) => {
            // What is decoded in it may grow when it is encoded again.
            match Cmcd::parse([&*data.to_string()]) {
                Ok(again) => assert_eq!(again, data),
                Err(error) => assert!(matches!(error, CmcdError::TooLong(_)), "{error}"),
            }
        }
        Err(error) => {
            let error = error.to_string();
            assert!(!error.contains('\n') && error.len() < 1000, "{error}");
        }
    }
}

pub(crate) fn target(text: &str) {
    check(Cmcd::parse([text]));
    check(Cmcd::parse(text.splitn(4, '\n')));
    if let Ok(Some(data)) = Cmcd::from_query(text) {
        check(Ok(data));
    }
}

//! Workload files: any text is a workload in the order of its times, or an error with one line to show.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab_apps::Workload;

fuzz_target!(|text: &str| {
    match text.parse::<Workload>() {
        Ok(workload) => {
            let requests = workload.requests();
            assert!(!requests.is_empty(), "{text:?}");
            assert!(requests.is_sorted_by_key(|request| request.at), "{text:?}");
            assert!(requests.iter().all(|request| request.size.get() > 0), "{text:?}");
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{text:?}"),
    }
});

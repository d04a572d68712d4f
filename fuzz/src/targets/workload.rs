//! Workload files: any text is a workload in the order of its times, or an error with one line to show.

use trimtab_apps::Workload;

pub(crate) fn target(text: &str) {
    match text.parse::<Workload>() {
        Ok(workload) => {
            let requests = workload.requests();
            assert!(!requests.is_empty(), "{text:?}");
            assert!(requests.is_sorted_by_key(|request| request.at), "{text:?}");
            assert!(requests.iter().all(|request| request.size.get() > 0), "{text:?}");
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{text:?}"),
    }
}

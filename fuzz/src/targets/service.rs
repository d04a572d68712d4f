//! Descriptions of services: any text is a service whose configurations can be built, or a message.

use trimtab_fleet::{Aggregate, Interval, Service};

pub(crate) fn target(text: &str) {
    match Service::parse(text) {
        Ok(service) => {
            let mut aggregate = Aggregate::new("fuzz/192.0.2.0/24".parse().expect("a good key"));
            for n in 0..8 {
                let configuration = aggregate.open(&service, Interval(n));
                configuration.spec().expect("permitted ranges lie within those of the algorithm");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

//! Configurations of the engine: any text is one, or a message that says where it goes wrong.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use trimtab_engine::Config;

fuzz_target!(|text: &str| {
    match Config::parse(Path::new("engine.toml"), text) {
        // What does not encrypt listens to this machine alone, unless it says that it may.
        Ok(config) => assert!(
            config.tls.is_some() || config.listen.ip().is_loopback() || text.contains("plaintext")
        ),
        Err(error) => assert!(error.to_string().starts_with("engine.toml:"), "{error}"),
    }
});

//! Scenario files: any text is a scenario that is printed as it was read, or an error.

use trimtab_lab::scenario::Scenario;

pub(crate) fn target(text: &str) {
    match Scenario::parse(text) {
        Ok(scenario) => {
            let printed = scenario.to_toml();
            let again = Scenario::parse(&printed).expect("what we print we read");
            assert_eq!(again.to_toml(), printed);
            // Valid or not, the result comes without a panic.
            if let Err(error) = scenario.validate() {
                assert!(!error.to_string().is_empty());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

//! The `trimtab` command.
fn main() {}

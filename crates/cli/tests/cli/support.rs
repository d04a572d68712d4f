//! Running the command in tests.

use std::path::Path;
use std::process::{Command, Output};

/// Runs `trimtab` with these arguments in a folder.
pub(crate) fn trimtab(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trimtab"))
        .args(args)
        .current_dir(folder)
        .env_remove("TRIMTAB_SHARED")
        .output()
        .expect("the command starts")
}

/// Standard output of a run that must succeed.
pub(crate) fn stdout(folder: &Path, args: &[&str]) -> String {
    let out = trimtab(folder, args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("output is UTF-8")
}

/// Message and standard output of a run that must fail: exit code 2, one message.
pub(crate) fn failure(folder: &Path, args: &[&str]) -> (String, String) {
    failed(trimtab(folder, args), args)
}

/// The same of a run with these arguments that is over.
pub(crate) fn failed(out: Output, args: &[&str]) -> (String, String) {
    let message = String::from_utf8(out.stderr).expect("messages are UTF-8");
    assert_eq!(out.status.code(), Some(2), "{args:?}: {message}");
    assert!(message.starts_with("error: "), "{args:?}: {message}");
    assert_eq!(message.matches("error:").count(), 1, "one message: {message}");
    assert!(!message.contains("panicked") && !message.contains("defect"), "{message}");
    (message, String::from_utf8(out.stdout).expect("output is UTF-8"))
}

/// The message of a run that must fail and has nothing to show.
pub(crate) fn error(folder: &Path, args: &[&str]) -> String {
    let (message, out) = failure(folder, args);
    assert_eq!(out, "", "{args:?} printed results as well as an error");
    message
}

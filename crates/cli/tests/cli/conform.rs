//! `trimtab conform`.

use serde_json::Value;

use crate::support::{error, stdout, trimtab};

#[test]
fn verdicts_come_as_a_table_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["conform", "--subject", "sim:cubic", "--check", "slow-start", "--check", "bbr-drain"];
    let table = stdout(folder.path(), &[&args[..], &["--json", "conform.json"]].concat());
    assert!(table.contains("slow-start  sim:cubic     pass"), "{table}");
    assert!(
        table.ends_with("1 pass, 0 fail, 1 do not apply; --json has the reasons.\n"),
        "{table}"
    );
    let text = std::fs::read_to_string(folder.path().join("conform.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["rows"][1]["reason"], "it is not BBR");
}

#[test]
fn what_departs_ends_with_code_1_and_says_from_what() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["conform", "--subject", "sim:cubic:beta=0.8", "--check", "cubic-reduction", "--quiet"];
    let output = trimtab(folder.path(), &args);
    assert_eq!(output.status.code(), Some(1));
    let table = String::from_utf8(output.stdout).unwrap();
    let sentence = "sim:cubic:beta=0.8 fails cubic-reduction: A loss leaves 0.7 of CUBIC's window.";
    assert!(table.contains(sentence), "{table}");
}

#[cfg(target_os = "linux")]
#[test]
fn verdicts_are_shown_where_the_file_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["conform", "--subject", "sim:cubic", "--check", "slow-start", "--json", "/dev/full"];
    let output = trimtab(folder.path(), &args);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stdout).unwrap().contains("1 pass, 0 fail"));
    let problem = String::from_utf8(output.stderr).unwrap();
    assert!(problem.contains("/dev/full"), "{problem}");
}

#[test]
fn checks_are_described_and_wrong_names_refused() {
    let folder = tempfile::tempdir().unwrap();
    let list = stdout(folder.path(), &["conform", "--list", "--check", "cubic-idle"]);
    assert!(list.starts_with("cubic-idle (RFC 9438 §4.2, §5.8)\n    Time in which"), "{list}");
    for (subject, says) in [
        ("cubic", "sim:ALGORITHM"),
        ("sim:cubik", "cubik"),
        #[cfg(not(feature = "quic"))]
        ("noq:cubic", "without QUIC"),
    ] {
        let problem = error(folder.path(), &["conform", "--subject", subject]);
        assert!(problem.contains(says), "{problem}");
    }
}

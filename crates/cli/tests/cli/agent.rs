//! What of `trimtab agent` needs neither root nor an agent that runs.

use crate::support::{error, stdout, trimtab};

#[test]
fn without_an_agent_its_verbs_say_how_to_start_one() {
    let dir = tempfile::tempdir().unwrap();
    for verb in [&["status"][..], &["flows", "--json"], &["why", "1"], &["top"]] {
        let args = [&["agent"], verb, &["--socket", "none.sock"]].concat();
        let message = error(dir.path(), &args);
        assert!(
            message.contains("none.sock") && message.contains("trimtab agent --config"),
            "{message}"
        );
    }
}

#[test]
fn an_order_names_connections_or_is_refused_with_the_forms_that_there_are() {
    let dir = tempfile::tempdir().unwrap();
    let message = error(dir.path(), &["agent", "pause", "web", "--socket", "none.sock"]);
    assert!(message.contains("\"web\" names no connections") && message.contains("rule:NAME"));
    for (verb, more) in [("pause", &["--for", "10min"][..]), ("resume", &[]), ("reset", &[])] {
        let args = [&["agent", verb, "rule:web", "--socket", "none.sock"], more].concat();
        let message = error(dir.path(), &args);
        assert!(message.contains("no agent answers at none.sock"), "{message}");
    }
}

#[test]
fn a_configuration_that_is_wrong_is_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.toml"), "[[rule]]\nport = \"http\"\n").unwrap();
    let message = error(dir.path(), &["agent", "--config", "agent.toml"]);
    assert!(message.contains("agent.toml:2:8: \"http\" is no port"), "{message}");
    let message = error(dir.path(), &["agent", "--config", "missing.toml"]);
    assert!(message.contains("no configuration missing.toml"), "{message}");
    assert!(message.contains("packaging/agent.toml"), "{message}");
}

#[test]
fn a_configuration_is_checked_without_an_agent() {
    let dir = tempfile::tempdir().unwrap();
    let check = ["agent", "check", "--config", "agent.toml"];
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/agent.toml");
    std::fs::copy(sample, dir.path().join("agent.toml")).unwrap();
    assert_eq!(stdout(dir.path(), &check), "agent.toml: good, rules: 1\n");
    let write = |text: &str| std::fs::write(dir.path().join("agent.toml"), text).unwrap();
    write("[[rule]]\nname = \"a\"\nnetns = \"/run/netns/nope\"\n");
    let said = stdout(dir.path(), &check);
    assert!(
        said.starts_with("note: rule a matches nothing as long as there is no network"),
        "{said}"
    );
    write("[rule]\nport = 80\n");
    assert!(error(dir.path(), &check).contains("agent.toml:1:1: there may be several rules"));
    write("[sockets]\ngroup = \"nobody-is-called-so\"\n");
    assert!(error(dir.path(), &check).contains("there is no group nobody-is-called-so"));
    write("[fleet]\nengine = \"http://127.0.0.1:1\"\ntoken_file = \"none\"\n");
    assert!(error(dir.path(), &check).contains("trimtab engine token add"));
}

#[test]
fn the_doctor_names_what_it_looked_at_and_fails_where_tcp_cannot_be_tuned() {
    let dir = tempfile::tempdir().unwrap();
    let out = trimtab(dir.path(), &["doctor", "--json"]);
    let findings: Vec<serde_json::Value> = serde_json::from_slice(&out.stdout).unwrap();
    assert!(findings.iter().any(|f| f["subject"] == "kernel"), "{findings:?}");
    let bad = findings.iter().any(|f| f["health"] == "bad");
    assert_eq!(out.status.code(), Some(i32::from(bad)));
    for finding in findings.iter().filter(|f| f["health"] == "bad") {
        assert_ne!(finding["remedy"], "", "{finding}");
    }
}

#[test]
fn on_a_kernel_that_lacks_something_the_doctor_says_what_to_boot() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, content: &[u8]| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    write("proc/sys/kernel/osrelease", b"5.4.0-generic\n");
    write("proc/self/status", b"CapEff:\t000001ffffffffff\n");
    write("proc/sys/net/core/bpf_jit_enable", b"0\n");
    let examine = || {
        let out = trimtab(dir.path(), &["doctor", "--root", "."]);
        assert_eq!(out.status.code(), Some(1));
        String::from_utf8(out.stdout).unwrap()
    };
    let said = examine();
    assert!(
        said.contains("NO  kernel: Linux 5.4.0-generic\n      boot Linux 6.1 or later"),
        "{said}"
    );
    assert!(said.contains("NO  description of its types (BTF): missing"), "{said}");
    assert!(said.contains("CONFIG_DEBUG_INFO_BTF=y"), "{said}");
    assert!(said.contains("sysctl -w net.core.bpf_jit_enable=1"), "{said}");

    // BTF with a header, an empty table of types and an empty name: a kernel without struct_ops.
    let words: [u32; 6] = [0x0001_eb9f, 24, 0, 0, 0, 1];
    let btf: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).chain([0]).collect();
    write("sys/kernel/btf/vmlinux", &btf);
    let said = examine();
    assert!(said.contains("ok  description of its types (BTF): there"), "{said}");
    assert!(said.contains("NO  congestion control in eBPF (struct_ops): missing"), "{said}");
    assert!(said.contains("boot Linux 6.1 or later"), "{said}");
}

#[test]
fn there_is_a_manual_page_for_every_verb() {
    let dir = tempfile::tempdir().unwrap();
    stdout(dir.path(), &["manual", "man"]);
    for name in ["trimtab.1", "trimtab-agent.1", "trimtab-agent-top.1", "trimtab-doctor.1"] {
        let page = std::fs::read_to_string(dir.path().join("man").join(name)).unwrap();
        assert!(page.contains(".TH ") && page.contains(".SH DESCRIPTION"), "{name}: {page}");
    }
    assert!(!dir.path().join("man/trimtab-emu-watchdog.1").exists());
    let page = std::fs::read_to_string(dir.path().join("man/trimtab-agent.toml.5")).unwrap();
    assert!(page.contains(".SH THE CONFIGURATION\n"), "{page}");
}

//! Builds the benchmark's own eBPF programs with clang, from the headers of `crates/kernel`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const SHARED: &str = "../../../crates/kernel/bpf";

fn main() {
    let out = PathBuf::from(variable("OUT_DIR"));
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    println!("cargo::rerun-if-env-changed=CLANG");
    for folder in ["bpf", SHARED, &format!("{SHARED}/core")] {
        watch(Path::new(folder));
    }
    for name in ["plain", "softirq"] {
        let mut command = Command::new(&clang);
        command
            .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror"])
            .args(["-Wno-unused-parameter", "-fdebug-prefix-map=.=trimtab"])
            .arg(format!("-D__TARGET_ARCH_{}", kernel_arch()))
            .arg(format!("-I{}", variable("DEP_BPF_INCLUDE")))
            .arg(format!("-I{SHARED}"))
            .args(["-c", &format!("bpf/{name}.bpf.c"), "-o"])
            .arg(out.join(format!("{name}.bpf.o")));
        let status = command.status().unwrap_or_else(|error| {
            panic!("{command:?} could not be started ({error}): install clang 14 or newer, or run ./dev")
        });
        assert!(status.success(), "{command:?} failed ({status}); what it says stands above");
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for this build script"))
}

/// The architecture as the kernel and libbpf call it.
fn kernel_arch() -> String {
    match variable("CARGO_CFG_TARGET_ARCH").as_str() {
        "x86_64" => "x86".to_owned(),
        "aarch64" => "arm64".to_owned(),
        "riscv64" => "riscv".to_owned(),
        other => other.to_owned(),
    }
}

fn watch(folder: &Path) {
    let entries = folder.read_dir().unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

//! Builds the eBPF objects with clang, makes Rust's side of `bpf/layout.h`, and builds the algorithm's core for the host,
//! where the differential test calls it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let out = PathBuf::from(variable("OUT_DIR"));
    for entry in walk(Path::new("bpf")) {
        println!("cargo::rerun-if-changed={}", entry.display());
    }
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());

    // libbpf's own headers, unpacked by libbpf-sys.
    let include = variable("DEP_BPF_INCLUDE");
    for (source, object) in [("main.bpf.c", "trimtab.bpf.o"), ("assign.bpf.c", "assign.bpf.o")] {
        run(Command::new(&clang)
            .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror"])
            .args(["-Wno-unused-parameter", "-fdebug-prefix-map=.=trimtab"])
            .arg(format!("-D__TARGET_ARCH_{}", kernel_arch()))
            .arg(format!("-I{include}"))
            .arg("-c")
            .arg(Path::new("bpf").join(source))
            .arg("-o")
            .arg(out.join(object)));
    }
    run(Command::new(&clang)
        .args(["-E", "-P", "-undef", "-x", "c", "bpf/layout.rs.in", "-o"])
        .arg(out.join("layout.rs")));

    cc::Build::new()
        .compiler(&clang)
        .file("bpf/host.c")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("trimtab_tcp_core");
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

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let entries = folder.read_dir().unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}

fn run(command: &mut Command) {
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{command:?} failed ({status}); what it says stands above"),
        Err(error) => panic!(
            "{command:?} could not be started ({error}): the eBPF programs need clang 14 or newer; \
             install it (Debian: apt-get install clang), run ./dev, or name it in CLANG"
        ),
    }
}

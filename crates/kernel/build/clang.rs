//! How clang is called for eBPF; the build script of `tools/bench/kernel` has it from here.

use std::env;
use std::path::Path;
use std::process::Command;

/// The compiler: `clang`, or what the variable CLANG names.
pub(crate) fn clang() -> String {
    println!("cargo::rerun-if-env-changed=CLANG");
    env::var("CLANG").unwrap_or_else(|_| "clang".to_owned())
}

/// Compiles a source to an object of eBPF programs; `include` are further folders of headers.
pub(crate) fn object(source: &Path, object: &Path, include: &[&str]) {
    // libbpf's own headers, unpacked by libbpf-sys.
    let libbpf = variable("DEP_BPF_INCLUDE");
    let folders = include.iter().copied().chain([libbpf.as_str()]);
    run(Command::new(clang())
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror"])
        .args(["-Wno-unused-parameter", "-fdebug-prefix-map=.=trimtab"])
        .arg(format!("-D__TARGET_ARCH_{}", kernel_arch()))
        .args(folders.map(|folder| format!("-I{folder}")))
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object));
}

pub(crate) fn variable(name: &str) -> String {
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

/// Has cargo build again when a file of the folder changes.
pub(crate) fn watch(folder: &Path) {
    let entries = folder.read_dir().unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            watch(&path);
        } else {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
}

/// Runs the compiler.
pub(crate) fn run(command: &mut Command) {
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{command:?} failed ({status}); its messages are above"),
        Err(error) => panic!(
            "{command:?} could not be started ({error}): the eBPF programs need clang 14 or newer; \
             install it (Debian: apt-get install clang), run ./dev, or name it in CLANG"
        ),
    }
}

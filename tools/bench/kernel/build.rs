//! Builds the benchmark's own eBPF programs with clang, from the headers of `crates/kernel`.

#[path = "../../../crates/kernel/build/clang.rs"]
mod clang;

use std::path::{Path, PathBuf};

const SHARED: &str = "../../../crates/kernel/bpf";

fn main() {
    let out = PathBuf::from(clang::variable("OUT_DIR"));
    clang::watch(Path::new("bpf"));
    clang::watch(Path::new(SHARED));
    for name in ["plain", "floor", "softirq"] {
        let source = format!("bpf/{name}.bpf.c");
        clang::object(Path::new(&source), &out.join(format!("{name}.bpf.o")), &[SHARED]);
    }
}

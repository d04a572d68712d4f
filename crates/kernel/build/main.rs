//! Builds the eBPF objects with clang, makes Rust's side of `bpf/layout.h`, and builds the
//! algorithm's core for the host, where the differential test calls it.

mod clang;

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let out = PathBuf::from(clang::variable("OUT_DIR"));
    clang::watch(Path::new("bpf"));
    for (source, object) in [("main.bpf.c", "trimtab.bpf.o"), ("assign.bpf.c", "assign.bpf.o")] {
        clang::object(&Path::new("bpf").join(source), &out.join(object), &[]);
    }
    clang::run(
        Command::new(clang::clang())
            .args(["-E", "-P", "-undef", "-x", "c", "bpf/layout.rs.in", "-o"])
            .arg(out.join("layout.rs")),
    );

    cc::Build::new()
        .compiler(clang::clang())
        .file("bpf/host.c")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("trimtab_tcp_core");
}

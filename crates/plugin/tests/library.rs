//! Shared libraries: the example, the layout of the interface, and what is wrong.

mod support;

use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{MSS, RTT, config, drive, of_crate, plug, refused};
use tempfile::TempDir;
use trimtab_cc::{CongestionControl, Spec, get_knob, set_knob};
use trimtab_plugin::{HEADER, RawAck, RawConfig, RawIdle, RawKnob, RawLoss, RawPlugin};
use trimtab_plugin::{RawSent, RawTimeout};
use trimtab_units::{Bytes, Rate, Time};

/// Runs the C compiler.
fn cc(arguments: &[&str], output: &Path, source: &Path) {
    let done = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2"])
        .args(arguments)
        .arg("-I")
        .arg(of_crate("include"))
        .arg("-o")
        .args([output, source])
        .output()
        .expect("a C compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A library of this source, and the scheme that names it.
fn library(folder: &TempDir, name: &str, source: &str) -> String {
    let [from, to] = ["c", "so"].map(|ending| folder.path().join(format!("{name}.{ending}")));
    std::fs::write(&from, source).unwrap();
    cc(&["-shared", "-fPIC", "-Wno-unused-function"], &to, &from);
    format!("plugin:{}", to.display())
}

/// The example, compiled.
fn example(folder: &TempDir) -> String {
    let to: PathBuf = folder.path().join("newreno.so");
    cc(&["-shared", "-fPIC", "-pedantic"], &to, &of_crate("examples/newreno.c"));
    format!("plugin:{}", to.display())
}

/// A library whose window is always twenty packets, with the fields of its table replaced by these.
fn with(folder: &TempDir, name: &str, fields: &str) -> String {
    let source = format!(
        "#include <math.h>\n#include <stdlib.h>\n#include \"trimtab_plugin.h\"\n\
         static void *create(const struct trimtab_config *c) {{ (void)c; return malloc(1); }}\n\
         static void *none(const struct trimtab_config *c) {{ (void)c; return NULL; }}\n\
         static void *no_copy(const void *s) {{ (void)s; return NULL; }}\n\
         static void ack(void *s, const struct trimtab_ack *a) {{ (void)s; (void)a; }}\n\
         static void loss(void *s, const struct trimtab_loss *l) {{ (void)s; (void)l; }}\n\
         static void rto(void *s, const struct trimtab_timeout *t) {{ (void)s; (void)t; }}\n\
         static void timer(void *s, uint64_t now) {{ (void)s; (void)now; }}\n\
         static uint64_t soon(const void *s) {{ (void)s; return 1000000; }}\n\
         static double twenty(const void *s) {{ (void)s; return 30000; }}\n\
         static double nan_(const void *s) {{ (void)s; return NAN; }}\n\
         static double minus(const void *s) {{ (void)s; return -1; }}\n\
         static const struct trimtab_knob bad[] = {{{{\"gain\", \"1\", \"\", 1, 0, 5}}}};\n\
         static struct trimtab_plugin p;\n\
         const struct trimtab_plugin *trimtab_plugin(void) {{\n\
         p.abi = TRIMTAB_PLUGIN_ABI; p.size = sizeof p; p.create = create; p.destroy = free;\n\
         p.on_ack = ack; p.on_loss = loss; p.on_timeout = rto; p.window = twenty;\n\
         (void)bad; {fields}\nreturn &p; }}\n"
    );
    library(folder, name, &source)
}

/// Where each field of the header lies, by a C compiler, is where the Rust side has it.
#[test]
fn the_header_has_the_same_structs() {
    let mut rust = String::new();
    let mut c =
        String::from("#include <stdio.h>\n#include <stddef.h>\n#include \"trimtab_plugin.h\"\n");
    c += "int main(void) {\n";
    let mut same = |c_says: &str, rust_says: usize| {
        writeln!(rust, "{rust_says}").unwrap();
        writeln!(c, "printf(\"%zu\\n\", {c_says});").unwrap();
    };
    macro_rules! offsets {
        ($Raw:ident, $name:literal: $($field:ident),*) => {
            same(concat!("sizeof(struct ", $name, ")"), size_of::<$Raw>());
            $(same(
                concat!("offsetof(struct ", $name, ", ", stringify!($field), ")"),
                offset_of!($Raw, $field),
            );)*
        };
    }
    offsets!(RawConfig, "trimtab_config": mss_bytes, initial_window_bytes, min_window_bytes, seed);
    offsets!(RawAck, "trimtab_ack": now_ns, acked_bytes, rtt_ns, srtt_ns, min_rtt_ns,
        inflight_bytes, prior_inflight_bytes, delivered_bytes, newest_sent_ns, delivery_rate_bps,
        rate_app_limited, cwnd_limited, in_recovery, reserved);
    offsets!(RawLoss, "trimtab_loss": now_ns, lost_bytes, newest_sent_ns, inflight_bytes,
        prior_inflight_bytes);
    offsets!(RawTimeout, "trimtab_timeout": now_ns, prior_inflight_bytes, inflight_bytes);
    offsets!(RawSent, "trimtab_sent": now_ns, bytes, inflight_bytes, app_limited, reserved);
    offsets!(RawIdle, "trimtab_idle": now_ns, idle_ns, rto_ns);
    offsets!(RawKnob, "trimtab_knob": name, unit, about, min, max, default_value);
    offsets!(RawPlugin, "trimtab_plugin": abi, size, flags, knob_count, name, about, knobs, create,
        destroy, clone, on_ack, on_loss, on_timeout, on_sent, on_idle, on_timer, window,
        pacing_rate, next_timer, set_knob);
    c += "return 0; }\n";

    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("sizes.c"), folder.path().join("sizes"));
    std::fs::write(&source, c).unwrap();
    cc(&["-pedantic"], &program, &source);
    let said = Command::new(program).output().unwrap().stdout;
    assert_eq!(String::from_utf8(said).unwrap(), rust);
    assert!(HEADER.contains("#define TRIMTAB_PLUGIN_ABI 1u"));
}

/// Every event has the window of the built-in algorithm, to the byte.
#[test]
fn the_example_does_what_the_built_in_newreno_does() {
    let folder = tempfile::tempdir().unwrap();
    let plug = plug(&example(&folder)).unwrap();
    let mut mine = plug.spec().build(&config(1));
    let mut built_in = Spec::new("newreno").unwrap().build(&config(1));
    assert_eq!((mine.name(), mine.window()), ("my-newreno", MSS * 10));
    let windows = drive(&mut mine, 0, 40);
    assert_eq!(windows, drive(&mut built_in, 0, 40));
    assert!(windows.iter().any(|window| *window > MSS * 15) && windows.contains(&(MSS * 2)));
    plug.check().unwrap();
}

#[test]
fn a_copy_lives_as_the_original_does_and_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let plug = plug(&example(&folder)).unwrap();
    assert!(plug.forks());
    let mut one = plug.spec().build(&config(1));
    drive(&mut one, 0, 7);
    let mut other = one.clone();
    let windows = drive(&mut one, 1000, 20);
    drop(one);
    assert_eq!(drive(&mut other, 1000, 20), windows);
    plug.check().unwrap();
}

#[test]
fn knobs_are_declared_checked_and_turned() {
    let folder = tempfile::tempdir().unwrap();
    let text = example(&folder);
    let mut plain = plug(&text).unwrap().spec().build(&config(1));
    let spec = plug(&format!("{text}:gain=3")).unwrap().spec();
    let mut quick = spec.build(&config(1));
    assert_eq!((get_knob(&plain, "gain"), get_knob(&quick, "gain")), (Some(1.0), Some(3.0)));
    // Steps of congestion avoidance, after the first loss.
    let steps = |cca| -> Vec<u64> {
        let windows = drive(cca, 0, 30);
        let grown = windows[60..].windows(2).filter(|pair| pair[1] > pair[0]);
        grown.map(|pair| (pair[1] - pair[0]).get()).collect()
    };
    let [slow, quick_steps] = [steps(&mut plain), steps(&mut quick)];
    assert!(slow.len() > 3 && slow.iter().all(|step| *step == 1500), "{slow:?}");
    assert!(
        quick_steps.len() > 3 && quick_steps.iter().all(|step| *step == 4500),
        "{quick_steps:?}"
    );
    assert!(set_knob(&mut quick, "gain", 1e9).is_err());
    let e = refused(&format!("{text}:gain=1000"));
    assert!(e.ends_with("gain = 1000 is outside its range 0.1 to 100"), "{e}");
    let e = refused(&format!("{text}:speed=1"));
    assert!(e.ends_with("no such knob; this algorithm has: gain"), "{e}");
}

/// Each mistake in a library has one error, which names the fix.
#[test]
fn a_library_that_is_wrong_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let e = refused("plugin:/nowhere/mine.so");
    assert!(e.contains("cannot be read: No such file") && e.contains("a file that exists"), "{e}");
    let text = folder.path().join("text.so");
    std::fs::write(&text, "no library").unwrap();
    let e = refused(&format!("plugin:{}", text.display()));
    assert!(e.contains("the library cannot be loaded") && e.contains("cc -shared -fPIC"), "{e}");
    let e = refused(&library(&folder, "empty", "int nothing;\n"));
    assert!(e.contains("exports no function `trimtab_plugin`: define it"), "{e}");
    for (name, fields, part) in [
        ("null", "return NULL;", "trimtab_plugin() returned NULL: return the address of a struct"),
        ("old", "p.abi = 0;", "is of version 0 of the plug-in interface, and this trimtab takes"),
        ("new", "p.abi = 2;", "is of version 2 of the plug-in interface"),
        ("short", "p.size = 8;", "has 8 bytes in the library and 144 in this trimtab: set .size"),
        ("create", "p.create = NULL;", "has NULL for create, which is not optional"),
        ("ack", "p.on_ack = NULL;", "has NULL for on_ack, which is not optional"),
        ("window", "p.window = NULL;", "has NULL for window, which is not optional"),
        ("timer", "p.next_timer = soon;", "has NULL for on_timer, which next_timer asks for"),
        ("knobs", "p.knob_count = 1;", "has NULL for knobs, of which knob_count says"),
        ("many", "p.knobs = bad; p.knob_count = 99;", "it declares 99 knobs, and there may be"),
        ("bad", "p.knobs = bad; p.knob_count = 1;", "knob number 0 is no knob: give it a name"),
    ] {
        let e = refused(&with(&folder, name, fields));
        assert!(e.contains(part) && !e.contains('\n'), "{name}: {e}");
    }
}

/// What goes wrong in a run is noted once, and the connection keeps its window.
#[test]
fn an_instance_that_fails_keeps_its_window_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    for (name, fields, part) in [
        ("none", "p.create = none;", "create() returned NULL: return a pointer to the state"),
        (
            "nan",
            "p.window = nan_;",
            "window(), after create, gave NaN as its window: give a finite",
        ),
        ("minus", "p.window = minus;", "window(), after create, gave -1 as its window"),
        ("rate", "p.pacing_rate = nan_;", "pacing_rate(), after create, gave NaN Mbit/s"),
        ("slow", "p.pacing_rate = minus;", "gave -0.000001 Mbit/s as its rate"),
        (
            "late",
            "p.next_timer = soon; p.on_timer = timer;",
            "next_timer(), after on_timer(1000000 ns), gave a time that is not later",
        ),
    ] {
        let plug = plug(&with(&folder, name, fields)).unwrap();
        let mut cca = plug.spec().build(&config(1));
        cca.on_timer(Time::from_millis(1));
        drive(&mut cca, 0, 2);
        let e = plug.check().unwrap_err().to_string();
        assert!(e.contains(part) && !e.contains('\n'), "{name}: {e}");
        assert!([MSS * 10, MSS * 20].contains(&cca.window()), "{name}: {:?}", cca.window());
        assert_eq!(cca.next_timer(), None, "{name}");
    }
}

#[test]
fn what_cannot_be_copied_is_known_before_and_noted_after() {
    let folder = tempfile::tempdir().unwrap();
    for (name, fields, forks) in [("stuck", "", false), ("no-copy", "p.clone = no_copy;", true)] {
        let plug = plug(&with(&folder, name, fields)).unwrap();
        assert_eq!(plug.forks(), forks, "{name}");
        let cca = plug.spec().build(&config(1));
        let mut copy = cca.clone();
        drive(&mut copy, 0, 1);
        assert_eq!(copy.window(), MSS * 20, "it stays");
        let e = plug.check().unwrap_err().to_string();
        assert!(e.contains("clone() returned NULL, or there is none"), "{e}");
    }
}

/// A library that sends at a rate, with a timer each millisecond: both are asked for and heeded.
#[test]
fn rates_and_timers_are_heeded() {
    let folder = tempfile::tempdir().unwrap();
    let source = r#"
#include <stdlib.h>
#include "trimtab_plugin.h"
struct cc { double rate; uint64_t next; };
static void *create(const struct trimtab_config *c) {
    struct cc *cc = calloc(1, sizeof *cc); (void)c; cc->next = 1000000; return cc; }
static void ack(void *s, const struct trimtab_ack *a) { (void)s; (void)a; }
static void loss(void *s, const struct trimtab_loss *l) { (void)s; (void)l; }
static void rto(void *s, const struct trimtab_timeout *t) { (void)s; (void)t; }
static void timer(void *s, uint64_t now) {
    struct cc *cc = s; cc->next = now + 1000000; cc->rate += 1e6; }
static double window(const void *s) { (void)s; return 60000; }
static double rate(const void *s) { return ((const struct cc *)s)->rate; }
static uint64_t next(const void *s) { return ((const struct cc *)s)->next; }
static const struct trimtab_plugin p = { .abi = TRIMTAB_PLUGIN_ABI, .size = sizeof p,
    .flags = TRIMTAB_MANAGES_RECOVERY, .create = create, .destroy = free, .on_ack = ack,
    .on_loss = loss, .on_timeout = rto, .on_timer = timer, .window = window, .pacing_rate = rate,
    .next_timer = next };
const struct trimtab_plugin *trimtab_plugin(void) { return &p; }
"#;
    let plug = plug(&library(&folder, "paced", source)).unwrap();
    let mut cca = plug.spec().build(&config(1));
    assert_eq!((cca.name(), cca.manages_recovery()), ("paced", true), "named for its file");
    assert_eq!((cca.pacing_rate(), cca.window()), (None, Bytes::new(60_000)));
    for ms in 1..=RTT.as_millis() {
        assert_eq!(cca.next_timer(), Some(Time::from_millis(ms)));
        cca.on_timer(Time::from_millis(ms));
    }
    assert_eq!(cca.pacing_rate(), Some(Rate::from_mbps(50.0)));
    plug.check().unwrap();
}

//! ONNX models: expected rates and windows, histories, copies, and what is wrong.
//!
//! The models are made by `examples/make_onnx.py`: one neuron.

mod support;

use std::path::Path;
use std::process::Command;

use support::{MSS, config, drive, of_crate, plug, refused};
use tempfile::TempDir;
use trimtab_cc::CongestionControl;
use trimtab_units::Rate;

/// A model of these weights and these settings, and the scheme that names it.
fn model(folder: &TempDir, name: &str, weights: &str, bias: &str, settings: &str) -> String {
    let path = folder.path().join(format!("{name}.onnx"));
    let done = Command::new("python3")
        .arg(of_crate("examples/make_onnx.py"))
        .arg(&path)
        // What begins with a minus is no option of this program.
        .args([weights, bias])
        .status()
        .unwrap();
    assert!(done.success());
    std::fs::write(path.with_extension("toml"), settings).unwrap();
    format!("onnx:{}", path.display())
}

/// The rates in Mbit/s after each of the first intervals of one round trip.
fn rates(text: &str, round_trips: u64) -> Vec<f64> {
    let plug = plug(text).unwrap();
    let mut cca = plug.spec().build(&config(1));
    let mut rates = Vec::new();
    for i in 0..round_trips * 10 {
        let now = trimtab_units::Time::from_millis(50 + 5 * i);
        while let Some(at) = cca.next_timer().filter(|at| *at <= now) {
            cca.on_timer(at);
            rates.push(cca.pacing_rate().unwrap_or(Rate::ZERO).mbps());
        }
        cca.on_sent(&trimtab_cc::Sent { now, bytes: MSS, inflight: MSS, app_limited: false });
        cca.on_ack(&support::ack(now, 1));
    }
    plug.check().unwrap();
    rates
}

fn close(got: &[f64], wanted: &[f64]) {
    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5 * b.abs().max(1.0);
    assert!(got.len() >= wanted.len() && got.iter().zip(wanted).all(is_close), "{got:?}");
}

/// Aurora's step (ICML 2019, §4.1): by 1 + αa, or 1 / (1 - αa) where a is negative. The first rate
/// is that of the initial window, 10 packets in 50 ms.
#[test]
fn a_rate_changes_by_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let up = "observations = [\"rtt_ratio\"]\noutput = \"rate-change\"\nscale = 0.1\n";
    let text = model(&folder, "up", "2", "0", up);
    close(&rates(&text, 4), &[2.4 * 1.2, 2.4 * 1.44, 2.4 * 1.728]);
    let text = model(&folder, "down", "-2", "0", up);
    close(&rates(&text, 4), &[2.4 / 1.2, 2.4 / 1.44, 2.4 / 1.728]);
    let usual = "observations = [\"rtt_ratio\"]\noutput = \"rate-change\"\n";
    close(&rates(&model(&folder, "usual", "2", "0", usual), 3), &[2.4 * 1.05, 2.4 * 1.05 * 1.05]);
    let clipped = format!("{usual}clip = 0.5\n");
    close(&rates(&model(&folder, "clipped", "2", "0", &clipped), 2), &[2.4 * 1.0125]);
}

/// 0.5 · (rtt_ms - 30) / 10 of three intervals, the smoothed value of each the same: 50 ms.
#[test]
fn a_history_holds_what_was_seen_scaled() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "observations = [\"rtt_ms\", \"acked_packets\"]\nhistory = 3\n\
                    output = \"rate\"\nmean = [30.0, 0.0]\ndeviation = [10.0, 1.0]\n";
    let text = model(&folder, "history", "0.5,0,0.5,0,0.5,0", "1", settings);
    close(&rates(&text, 3), &[4.0, 4.0]);
    // Only the oldest of three counts: packets of the first interval, then of the first again,
    // until the second becomes the oldest.
    let settings = "observations = [\"now_ms\"]\nhistory = 3\noutput = \"rate\"\n";
    let text = model(&folder, "oldest", "1,0,0", "0", settings);
    close(&rates(&text, 6), &[100.0, 100.0, 100.0, 150.0]);
}

#[test]
fn a_window_is_multiplied_or_given() {
    let folder = tempfile::tempdir().unwrap();
    let first = |text: &str| {
        let plug = plug(text).unwrap();
        let mut cca = plug.spec().build(&config(1));
        let mut windows = drive(&mut cca, 0, 3);
        windows.dedup();
        plug.check().unwrap();
        assert_eq!(cca.pacing_rate(), None);
        windows
    };
    let settings = "observations = [\"loss\"]\noutput = \"window-power\"\n";
    let windows = first(&model(&folder, "power", "0", "0.5", settings));
    assert_eq!(windows[..3], [MSS * 10, MSS * 20, MSS * 40], "2 to the 2 · 0.5 (Orca, eq. 2)");
    let settings = "observations = [\"loss\"]\noutput = \"window\"\ninterval = \"20ms\"\n";
    let windows = first(&model(&folder, "given", "0", "33", settings));
    assert_eq!(windows[..2], [MSS * 10, MSS * 33]);
    assert_eq!(windows.last(), Some(&(MSS * 2)), "a timeout leaves the least");
}

#[test]
fn a_copy_lives_as_the_original_does() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "observations = [\"lost_packets\", \"rtt_ratio\"]\nhistory = 2\n\
                    output = \"window-power\"\nscale = 0.1\n";
    let text = model(&folder, "fork", "-3,1,-2,0.5", "0", settings);
    let run = || {
        let mut one = plug(&text).unwrap().spec().build(&config(1));
        drive(&mut one, 0, 7);
        let mut other = one.clone();
        let windows = drive(&mut one, 1000, 20);
        assert_eq!(drive(&mut other, 1000, 20), windows);
        windows
    };
    let windows = run();
    assert_eq!(run(), windows, "and again");
    assert!(windows.iter().max() > windows.iter().min());
}

#[test]
fn what_is_wrong_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let fine = "observations = [\"loss\"]\noutput = \"rate\"\n";
    for (name, weights, settings, part) in [
        (
            "inputs",
            "1,2",
            fine,
            "its input has the shape [1, 2], and history times observations are 1",
        ),
        (
            "name",
            "1",
            "observations = [\"los\"]\noutput = \"rate\"\n",
            "no observation \"los\"; there are",
        ),
        ("none", "1", "observations = []\noutput = \"rate\"\n", "give at least one observation"),
        ("output", "1", "observations = [\"loss\"]\noutput = \"x\"\n", "unknown variant `x`"),
        ("key", "1", &format!("{fine}clips = 1\n"), "unknown field `clips`"),
        ("mean", "1", &format!("{fine}mean = [1.0, 2.0]\n"), "a number for each observation"),
        (
            "zero",
            "1",
            &format!("{fine}deviation = [0.0]\n"),
            "a number for each observation, and no 0",
        ),
        ("every", "1", &format!("{fine}interval = \"often\"\n"), "\"often\" is no interval"),
        ("scale", "1", &format!("{fine}scale = 0\n"), "scale is a finite number other than 0"),
    ] {
        let e = refused(&model(&folder, name, weights, "0", settings));
        assert!(e.contains(part), "{name}: {e}");
    }
    let text = model(&folder, "alone", "1", "0", fine);
    std::fs::remove_file(folder.path().join("alone.toml")).unwrap();
    let e = refused(&text);
    assert!(e.contains("alone.toml: cannot be read") && e.contains("a file of that name"), "{e}");
    std::fs::write(folder.path().join("junk.onnx"), "junk").unwrap();
    std::fs::write(folder.path().join("junk.toml"), fine).unwrap();
    let e = refused(&format!("onnx:{}", folder.path().join("junk.onnx").display()));
    assert!(e.contains("the model cannot be used: ") && e.contains("export it as ONNX"), "{e}");
    assert!(!Path::new("/nowhere").exists());
    assert!(refused("onnx:/nowhere/mine.onnx").contains("cannot be read: No such file"));
}

/// A network that overflows answers infinity or NaN, and that is an error of its own.
#[test]
fn a_model_that_overflows_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "observations = [\"rtt_ms\"]\noutput = \"rate\"\n";
    let plug = plug(&model(&folder, "big", "3e38", "3e38", settings)).unwrap();
    let mut cca = plug.spec().build(&config(1));
    drive(&mut cca, 0, 3);
    let e = plug.check().unwrap_err().to_string();
    assert!(e.contains("on_interval gave inf Mbit/s as its rate: give a finite number"), "{e}");
}

//! Python classes: the example, what they see and answer, copies, and what is wrong.

mod support;

use std::path::PathBuf;

use support::{MSS, config, drive, of_crate, plug, refused};
use tempfile::TempDir;
use trimtab_cc::{CongestionControl, Spec, get_knob};
use trimtab_plugin::OBSERVATIONS;
use trimtab_units::Rate;

/// A file of this text, and the scheme that names it.
fn file(folder: &TempDir, name: &str, text: &str) -> String {
    let path: PathBuf = folder.path().join(format!("{name}.py"));
    std::fs::write(&path, text).unwrap();
    format!("python:{}", path.display())
}

/// Every event has the window of the built-in algorithm, to the byte.
#[test]
fn the_example_does_what_the_built_in_newreno_does() {
    let plug = plug(&format!("python:{}", of_crate("examples/newreno.py").display())).unwrap();
    let mut mine = plug.spec().build(&config(1));
    let mut built_in = Spec::new("newreno").unwrap().build(&config(1));
    assert_eq!((mine.name(), mine.window()), ("NewReno", MSS * 10));
    // The interval has a timer, at which the example does nothing.
    let mut windows = drive(&mut mine, 0, 40);
    let mut wanted = drive(&mut built_in, 0, 40);
    windows.dedup();
    wanted.dedup();
    assert_eq!(windows, wanted);
    assert!(windows.contains(&(MSS * 2)));
    plug.check().unwrap();
}

#[test]
fn a_deep_copy_lives_as_the_original_does_and_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let text = "class Random:\n    interval = '5ms'\n    def __init__(self, config):\n        \
                self.random, self.past = config.random, []\n    \
                def on_interval(self, seen):\n        self.past.append(self.random.uniform(20e3, 60e3))\n        \
                return {'window_bytes': sum(self.past) / len(self.past)}\n";
    let plug = plug(&file(&folder, "random", text)).unwrap();
    let run = |seed| {
        let mut one = plug.spec().build(&config(seed));
        drive(&mut one, 0, 4);
        let mut other = one.clone();
        let windows = drive(&mut one, 1000, 20);
        drop(one);
        assert_eq!(drive(&mut other, 1000, 20), windows, "the fork is equal");
        windows
    };
    let first = run(u64::MAX);
    assert_eq!(run(u64::MAX), first, "the same seed gives the same windows");
    assert_ne!(run(u64::MAX - 1), first, "all bits of the seed count");
    plug.check().unwrap();
}

/// A class in another thread has a worker of its own, and the same windows.
#[test]
fn every_thread_gives_the_same() {
    let plug = plug(&format!("python:{}", of_crate("examples/newreno.py").display())).unwrap();
    let run = move || drive(&mut plug.spec().build(&config(1)), 0, 20);
    let here = run();
    let there = std::thread::spawn(run).join().unwrap();
    assert_eq!(here, there);
    // One that moves to another thread keeps its worker.
    let mut moved = plug.spec().build(&config(1));
    let moved = std::thread::spawn(move || drive(&mut moved, 0, 20)).join().unwrap();
    assert_eq!(moved, here);
    plug.check().unwrap();
}

/// Ten packets of 1500 bytes in a round trip of 50 ms: 2.4 Mbit/s, sent as they arrive.
#[test]
fn an_interval_shows_what_happened_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let text = format!(
        "class Look:\n    def __init__(self, config):\n        self.first = True\n    \
         def on_interval(self, seen):\n        with open({log:?}, 'a') as log:\n            \
         print(*seen._fields, file=log) if self.first else None\n            \
         print(*seen, file=log)\n        self.first = False\n        \
         return {{'rate_mbps': 2 * seen.throughput_mbps}}\n"
    );
    let plug = plug(&file(&folder, "look", &text)).unwrap();
    let mut cca = plug.spec().build(&config(1));
    drive(&mut cca, 0, 4);
    plug.check().unwrap();
    let log = std::fs::read_to_string(log).unwrap();
    let mut lines = log.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    assert_eq!(names, OBSERVATIONS.map(|(name, _)| name));
    let second = lines.nth(1).unwrap();
    let value = |name: &str| -> f64 {
        second[names.iter().position(|known| *known == name).unwrap()].parse().unwrap()
    };
    for (name, wanted) in [
        ("interval_ms", 50.0),
        ("sent_packets", 10.0),
        ("acked_packets", 10.0),
        ("sending_mbps", 2.4),
        ("throughput_mbps", 2.4),
        ("lost_packets", 0.0),
        ("loss", 0.0),
        ("rtt_ms", 50.0),
        ("rtt_min_ms", 50.0),
        ("min_rtt_ms", 50.0),
        ("rtt_gradient", 0.0),
        ("rtt_ratio", 1.0),
        ("send_ratio", 1.0),
        ("mss_bytes", 1500.0),
        ("cwnd_limited", 1.0),
    ] {
        assert!((value(name) - wanted).abs() < 1e-9, "{name}: {}, not {wanted}", value(name));
    }
    // A rate without a window: two round trips of it may be in flight.
    let rate = cca.pacing_rate().unwrap();
    assert!(
        rate <= Rate::from_mbps(4.8),
        "{rate:?}: the timeout leaves the first window's at most"
    );
    assert!(cca.window() >= MSS * 10);
}

#[test]
fn knobs_are_attributes() {
    let folder = tempfile::tempdir().unwrap();
    let text = "class Steady:\n    knobs = {'packets': (20, 2, 100, 'packets', 'the window')}\n    \
                def __init__(self, config):\n        self.mss = config.mss_bytes\n    \
                def on_ack(self, ack):\n        return {'window_bytes': self.packets * self.mss}\n";
    let text = file(&folder, "steady", text);
    let window = |text: &str| {
        let plug = plug(text).unwrap();
        let mut cca = plug.spec().build(&config(1));
        let windows = drive(&mut cca, 0, 2);
        plug.check().unwrap();
        (windows[0], get_knob(&cca, "packets"))
    };
    assert_eq!(window(&text), (MSS * 20, Some(20.0)));
    assert_eq!(window(&format!("{text}:packets=30")), (MSS * 30, Some(30.0)));
    assert_eq!(window(&format!("{text}:Steady:packets=30")), (MSS * 30, Some(30.0)));
    assert!(refused(&format!("{text}:packets=1")).contains("outside its range 2 to 100"));
}

#[test]
fn a_file_that_is_wrong_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let two = "class A:\n    def on_ack(self, ack): pass\nclass B(A):\n    pass\n";
    let syntax = "class A:\n    def on_ack(self ack): pass\n";
    let interval = "class A:\n    interval = '3'\n    def on_ack(self, ack): pass\n";
    let knob = "class A:\n    knobs = {'gain': 3}\n    def on_ack(self, ack): pass\n";
    let range = "class A:\n    knobs = {'gain': (3, 4, 5)}\n    def on_ack(self, ack): pass\n";
    for (name, text, class, part) in [
        ("empty", "x = 1\n", "", "needs one class with a method on_interval or on_ack"),
        ("two", two, "", "there are: A, B"),
        ("other", two, ":C", "no class C with on_interval or on_ack in the file; there are: A, B"),
        ("syntax", syntax, "", "SyntaxError"),
        ("import", "import nothing_like_it\n", "", "ModuleNotFoundError: No module named"),
        ("exit", "raise SystemExit(3)\n", "", "SystemExit: 3"),
        ("interval", interval, "", "\"3\" is no interval: give e.g. \"1rtt\" or \"20ms\""),
        ("knob", knob, "", "knob 'gain' is 3: give (default, minimum, maximum)"),
        ("range", range, "", "knob number 0 is no knob"),
    ] {
        let e = refused(&format!("{}{class}", file(&folder, name, text)));
        assert!(e.contains(part), "{name}: {e}");
    }
    assert!(refused("python:/nowhere/mine.py").contains("cannot be read: No such file"));
}

#[test]
fn an_instance_that_fails_keeps_its_window_and_shows_the_traceback() {
    let folder = tempfile::tempdir().unwrap();
    let class = |body: &str| {
        format!("class A:\n    def __init__(self, config):\n        pass\n    {body}\n")
    };
    for (name, body, parts) in [
        (
            "raises",
            "def on_ack(self, ack):\n        return 1 / 0",
            vec!["ZeroDivisionError: division by zero; mend the class", "line 5, in on_ack"],
        ),
        (
            "nan",
            "def on_ack(self, ack):\n        return {'window_bytes': float('nan')}",
            vec!["on_ack gave NaN as its window: give a finite number of bytes"],
        ),
        (
            "negative",
            "def on_interval(self, seen):\n        return {'rate_mbps': -1}",
            vec!["on_interval gave -1 Mbit/s as its rate: give a finite number above 0"],
        ),
        (
            "number",
            "def on_ack(self, ack):\n        return 3",
            vec!["A.on_ack returned 3: return None, or a dict with window_bytes, rate_mbps"],
        ),
        (
            "text",
            "def on_loss(self, loss):\n        return {'window_bytes': 'many'}",
            vec!["A.on_loss returned {'window_bytes': 'many'}: give numbers"],
        ),
        (
            "reads",
            "def on_ack(self, ack):\n        return input()",
            vec!["EOFError", "line 5, in on_ack"],
        ),
        (
            "dies",
            "def on_ack(self, ack):\n        import os\n        os._exit(3)",
            vec!["the Python process ended (exit status: 3): look above"],
        ),
    ] {
        let plug = plug(&file(&folder, name, &class(body))).unwrap();
        let mut cca = plug.spec().build(&config(1));
        let windows = drive(&mut cca, 0, 6);
        assert_eq!(windows[0], MSS * 10, "{name}");
        let e = plug.check().unwrap_err().to_string();
        assert!(parts.iter().all(|part| e.contains(part)), "{name}: {e}");
    }
    let text =
        class("def on_ack(self, ack):\n        pass").replace("pass\n    def", "x()\n    def");
    let plug = plug(&file(&folder, "init", &text)).unwrap();
    assert_eq!(plug.spec().build(&config(1)).window(), MSS * 10);
    assert!(plug.check().unwrap_err().to_string().contains("NameError: name 'x' is not defined"));
}

/// What a class prints goes to standard error, and does not end up in an answer.
#[test]
fn a_class_may_print() {
    let folder = tempfile::tempdir().unwrap();
    let text = "print('loaded')\nclass A:\n    def __init__(self, config):\n        \
                print(config)\n    def on_ack(self, ack):\n        return {'window_bytes': 45000}\n";
    let plug = plug(&file(&folder, "prints", text)).unwrap();
    let mut cca = plug.spec().build(&config(1));
    assert_eq!(drive(&mut cca, 0, 1)[0], MSS * 30);
    plug.check().unwrap();
}

//! `trimtab leaderboard`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{error, stdout};

/// A small board of the sets that ship: no file is needed.
const BOARD: [&str; 12] = [
    "leaderboard",
    "alone",
    "shared",
    "short",
    "video",
    "--quick",
    "--quiet",
    "--cc",
    "bbr",
    "--cc",
    "copa:mit",
    "--cc=mortise",
];

const CARD: &str = r#"
scheme = "python:mine.py"
authors = ["A. N. Author"]
source = "a thesis & more"
licence = "MIT"
training = "none: it has rules"
run = "save mine.py, and run trimtab where it lies"
"#;

const MINE: &str = r#"
class Mine:
    interval = "1rtt"

    def __init__(self, config):
        self.window = config.initial_window_bytes

    def on_interval(self, seen):
        self.window *= 1.05 if seen.rtt_ratio < 1.2 else 0.95
        return {"window_bytes": self.window}
"#;

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The rows of a set: schemes with their changes.
fn rows(board: &Value, set: &str) -> Vec<(String, f64)> {
    let sets = board["sets"].as_array().unwrap();
    let set = sets.iter().find(|s| s["name"] == set).unwrap_or_else(|| panic!("no {set}"));
    let row = |row: &Value| {
        (row["cc"].as_str().unwrap().to_owned(), row["change"]["value"].as_f64().unwrap())
    };
    set["rows"].as_array().unwrap().iter().map(row).collect()
}

/// The file that keeps what a scheme ran on a set.
fn kept(out: &Path, set: &str, scheme: &str) -> PathBuf {
    let files = fs::read_dir(out.join("runs").join(set)).unwrap();
    let of_scheme = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap();
        name.rsplit_once('-').unwrap().0 == scheme
    };
    files.map(|file| file.unwrap().path()).find(of_scheme).unwrap()
}

/// Everything but processor time, and what names the command.
fn without_times(mut board: Value) -> Value {
    board["cpu"] = Value::Null;
    board["command"] = Value::Null;
    board
}

#[test]
fn a_quick_board_has_rows_in_order_paths_and_a_page_and_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let text = stdout(folder, &BOARD);
    let out = folder.join("leaderboard");
    let board = read(&out.join("leaderboard.json"));
    assert_eq!(board["schema"], "trimtab.leaderboard/1");
    assert_eq!(board["quick"], true);

    // Rows: every scheme once, the best first, the reference at nothing.
    for set in ["alone", "shared", "short", "video"] {
        let rows = rows(&board, set);
        assert!(rows.windows(2).all(|pair| pair[0].1 >= pair[1].1), "{set}: {rows:?}");
        let mut names: Vec<&str> = rows.iter().map(|(cc, _)| cc.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["bbr", "copa:mit", "cubic", "mortise"]);
        assert!(rows.contains(&("cubic".to_owned(), 0.0)), "{set}: {rows:?}");
    }
    let standings = board["standings"].as_array().unwrap();
    let first = standings[0]["cc"].as_str().unwrap();
    assert!(text.lines().nth(2).unwrap().trim_start().starts_with(first), "{text}");

    // Harm where others are, and a path's row is that of its runs.
    let sets = board["sets"].as_array().unwrap();
    let harmed = |set: usize| sets[set]["rows"][0]["harm"].is_object();
    assert_eq!([0, 1, 2].map(harmed), [false, true, false]);
    let row = sets[0]["rows"].as_array().unwrap().iter().find(|row| row["cc"] == "bbr").unwrap();
    let run = &read(&kept(&out, "alone", "bbr"))["runs"][0];
    let of_run = |path: &&Value| {
        let name = path["path"].as_str().unwrap();
        name.split(" (").next() == run["trace"].as_str()
    };
    let path = row["paths"].as_array().unwrap().iter().find(of_run).unwrap();
    assert_eq!(path["throughput_mbps"], run["throughput_mbps"], "one seed, so its run's");

    // Processor time: of each, and the reference's ratio is 1.
    let cpu = board["cpu"].as_array().unwrap();
    assert_eq!(cpu.len(), 4);
    assert!(cpu.iter().all(|row| row["ns"].as_f64().unwrap() > 0.0));
    let of_cubic = cpu.iter().find(|row| row["cc"] == "cubic").unwrap();
    assert_eq!(of_cubic["ratio"], 1.0);

    let page = fs::read_to_string(out.join("index.html")).unwrap();
    assert!(page.contains(&format!("<th scope=\"row\">{first}</th><td>")), "the first row");
    assert!(page.contains("<details><summary>") && page.contains("harm to others' throughput"));
    assert!(!page.contains("http://") && !page.contains("https://"), "it needs no network");

    // What ran is taken: a changed result changes the board, so nothing ran. What is gone runs again,
    // as after an interruption.
    let of_bbr = kept(&out, "short", "bbr");
    let mut changed = read(&of_bbr);
    for run in changed["runs"].as_array_mut().unwrap() {
        run["users"]["log_mean"] = Value::from(1e6);
    }
    fs::write(&of_bbr, changed.to_string()).unwrap();
    fs::remove_file(kept(&out, "short", "mortise")).unwrap();
    fs::remove_file(out.join("leaderboard.json")).unwrap();
    stdout(folder, &BOARD);
    let again = read(&out.join("leaderboard.json"));
    assert!(rows(&again, "short")[0].1 > 1e6, "{:?}", rows(&again, "short"));
    fs::remove_file(of_bbr).unwrap();
    stdout(folder, &BOARD);
    assert_eq!(without_times(read(&out.join("leaderboard.json"))), without_times(board));
}

#[test]
fn a_submission_runs_next_to_the_board_and_shows_its_card() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    fs::write(folder.join("mine.py"), MINE).unwrap();
    fs::write(folder.join("card.toml"), CARD).unwrap();
    let quick = ["leaderboard", "alone", "--quick", "--quiet", "--cc", "bbr"];
    let args = [&quick[..], &["--submit", "card.toml"]].concat();
    stdout(folder, &args);
    let out = folder.join("leaderboard");
    let board = read(&out.join("leaderboard.json"));
    let names: Vec<String> = rows(&board, "alone").into_iter().map(|(cc, _)| cc).collect();
    assert!(names.contains(&"python:mine.py".to_owned()), "{names:?}");
    assert_eq!(board["cards"][0]["authors"][0], "A. N. Author");
    let of_process = |row: &Value| row["cc"] == "python:mine.py";
    assert!(!board["cpu"].as_array().unwrap().iter().any(of_process), "a process of its own");
    let page = fs::read_to_string(out.join("index.html")).unwrap();
    assert!(page.contains("<a href=\"#card-0\">python:mine.py</a>"), "the row leads to the card");
    assert!(page.contains("<dd>a thesis &amp; more</dd>"));

    // A plug-in that changed is another: it runs again.
    fs::write(folder.join("mine.py"), MINE.replace("1.05", "1.0")).unwrap();
    stdout(folder, &args);
    assert_ne!(rows(&read(&out.join("leaderboard.json")), "alone"), rows(&board, "alone"));
}

#[test]
fn what_is_wrong_is_refused_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    fs::write(folder.join("card.toml"), CARD).unwrap();
    let quick = ["leaderboard", "alone", "--quick", "--quiet"];
    let e = |args: &[&str]| error(folder, &[&quick[..], args].concat());
    for (from, to, expected) in [
        ("run = ", "runs = ", "the card cannot be used: "),
        ("\"MIT\"", "\"as it likes\"", "is no SPDX expression"),
        ("python:mine.py", "omniscient", "no real sender can reach a bound"),
        ("python:mine.py", "mortise", "it is on the board without a card"),
        ("A. N. Author", "", "the card has no authors: say who wrote it"),
    ] {
        fs::write(folder.join("bad.toml"), CARD.replacen(from, to, 1)).unwrap();
        let message = e(&["--submit", "bad.toml"]);
        assert!(message.starts_with("error: bad.toml: "), "{message}");
        assert!(message.contains(expected), "{to}: {message}");
    }
    assert!(e(&["--submit", "no.toml"]).contains("cannot read the card no.toml"));
    assert!(e(&["--submit", "card.toml"]).contains("python:mine.py"), "there is no mine.py");
    let message = e(&["--submit", "card.toml", "--submit", "card.toml"]);
    assert!(message.contains("two cards submit python:mine.py"), "{message}");
    assert!(e(&["--cc", "sprout:x"]).contains("no set has the scheme sprout:x"));
    let message = error(folder, &["leaderboard", "allone", "--quick"]);
    assert!(message.contains("no set \"allone\": there are alone, kernel, shared, short, video"));
    assert!(e(&["--sets", "none"]).contains("cannot read the sets in none"));
    assert!(!folder.join("leaderboard").exists(), "nothing ran");
}

#[test]
fn sets_of_ones_own_take_the_place_of_those_that_ship() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    fs::create_dir(folder.join("held")).unwrap();
    let set = "about = \"mine\"\nschemes = [\"cubic\", \"vegas\"]\n[scenario]\nseeds = 1\n\
        duration = \"10s\"\ntraces = [\"constant:12Mbit/s\", \"constant:24Mbit/s\"]\n\
        rtt = [\"20ms\", \"60ms\"]\n[[scenario.app]]\nkind = \"download\"\n";
    fs::write(folder.join("held/mine.toml"), set).unwrap();
    stdout(folder, &["leaderboard", "--sets", "held", "--quick", "--quiet", "--out", "board"]);
    let board = read(&folder.join("board/leaderboard.json"));
    assert_eq!(board["sets"].as_array().unwrap().len(), 1);
    let paths = board["sets"][0]["rows"][0]["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 3, "a quick set has three points");
    assert!(paths.iter().all(|path| path["path"].as_str().unwrap().contains("ms, 150KB")));
}

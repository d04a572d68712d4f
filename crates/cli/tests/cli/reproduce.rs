//! `trimtab reproduce`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{error, stdout};

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");

const FIGURE: &[&str] =
    &["reproduce", "mortise/fig13", "--quick", "--quiet", "--scenarios", SCENARIOS];

#[test]
fn a_quick_figure_is_judged_drawn_and_not_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let text = stdout(folder, FIGURE);
    let head = "mortise/fig13 (quick: it says little of the paper)\n  paper          fair; ";
    assert!(text.starts_with(head), "{text}");
    assert!(text.contains(": Jain's index of mortise, 1 runs\n"), "{text}");

    let own = folder.join("reproduced/mortise-fig13");
    let verdict: Value =
        serde_json::from_slice(&fs::read(own.join("verdict.json")).unwrap()).unwrap();
    let jain = verdict["findings"][0]["ours"]["value"].as_f64().unwrap();
    let result: Value =
        serde_json::from_slice(&fs::read(own.join("result.json")).unwrap()).unwrap();
    let runs = result["runs"].as_array().unwrap();
    let run = runs.iter().find(|run| run["cc"] == "mortise").unwrap();
    assert_eq!(run["jain"].as_f64(), Some(jain), "one run, so its index");
    let expected = if jain >= 0.95 { "agrees" } else { "smaller" };
    assert_eq!(verdict["findings"][0]["verdict"], expected);
    assert!(fs::read_to_string(own.join("figure.svg")).unwrap().starts_with("<svg"));
    assert!(fs::read(own.join("figure.png")).unwrap().starts_with(b"\x89PNG"));

    // What is there is taken: a changed result changes the verdict, so nothing ran.
    let mut changed = result.clone();
    for run in changed["runs"].as_array_mut().unwrap() {
        run["jain"] = Value::from(0.25);
    }
    fs::write(own.join("result.json"), changed.to_string()).unwrap();
    let json: Value =
        serde_json::from_str(&stdout(folder, &[FIGURE, &["--json"]].concat())).unwrap();
    let finding = &json[0]["findings"][0];
    assert_eq!(
        (&finding["verdict"], &finding["ours"]["value"]),
        (&"contradicts".into(), &0.25.into())
    );

    // A picture that is gone is drawn again.
    fs::remove_file(own.join("figure.png")).unwrap();
    stdout(folder, FIGURE);
    assert!(own.join("figure.png").exists());

    let whole: Vec<&str> = FIGURE.iter().copied().filter(|arg| *arg != "--quick").collect();
    let message = error(folder, &whole);
    assert!(message.contains("result.json: is of another scenario or version"), "{message}");
}

#[test]
fn names_are_listed_and_wrong_ones_refused() {
    let dir = tempfile::tempdir().unwrap();
    let list = stdout(dir.path(), &["reproduce", "--list"]);
    assert!(list.lines().any(|line| line.starts_with("muses/table4 ")), "{list}");
    let json = stdout(dir.path(), &["reproduce", "--list", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    // The last line has the counts.
    assert_eq!(json.as_array().unwrap().len() + 1, list.lines().count());
    let counts = list.lines().last().unwrap();
    assert!(counts.contains(" entries: ") && counts.contains(" contradict, "), "{counts}");
    let message = error(dir.path(), &["reproduce", "mortise/fig13", "muses/tabel4"]);
    assert!(
        message.contains("no figure \"muses/tabel4\": the nearest are muses/table4"),
        "{message}"
    );
    let message = error(dir.path(), &["reproduce", "floo/fig9"]);
    assert!(
        message.contains("floo/fig9 does not run here: Needs production traffic."),
        "{message}"
    );
    let message = error(dir.path(), &["reproduce", "mortise/fig9"]);
    assert!(message.contains("does not run here: `./dev bench step` makes it"), "{message}");
    assert!(!dir.path().join("reproduced").exists(), "nothing ran");
}

#[test]
fn figures_of_one_fleet_share_its_seeds() {
    let dir = tempfile::tempdir().unwrap();
    let args =
        ["reproduce", "pcc/fig5", "pcc/fig7a", "--quick", "--quiet", "--scenarios", SCENARIOS];
    let text = stdout(dir.path(), &args);
    assert!(text.contains(": mean(loss) of learnt (pacifist) vs. bbr, 3 runs\n"), "{text}");
    assert!(
        text.ends_with(" not told apart\n") && text.contains("2 figures, 8 claims: "),
        "{text}"
    );
    let out = dir.path().join("reproduced");
    let seeds: Vec<_> = fs::read_dir(out.join("fleets/fleet-policing")).unwrap().collect();
    assert_eq!(seeds.len(), 1, "one seed, for both");
    assert!(out.join("pcc-fig7a/figure.svg").exists());
    let json = stdout(dir.path(), &[&args[..], &["--json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[1]["findings"].as_array().unwrap().len(), 4);
}

#[test]
fn the_page_is_that_of_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/papers.md");
    let page = stdout(path.parent().unwrap(), &["reproduce", "--page"]);
    let advice = "run `trimtab reproduce --page > docs/reference/papers.md`";
    assert!(fs::read_to_string(&path).unwrap() == page, "{advice}");
}

#[test]
fn samples_are_judged_drawn_and_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["reproduce", "mortise/fig19", "floo/fig5", "--scenarios", SCENARIOS];
    let text = stdout(dir.path(), &args);
    let line = |part: &str| text.lines().find(|line| line.contains(part)).unwrap_or(&text);
    let own = line("percent at 0 or less of download: gap between requests, ms");
    assert!(own.starts_with("  agrees ") && own.ends_with(" samples"), "{text}");
    assert!(line("in the largest 3.4% of web").starts_with("  agrees "), "{text}");
    let svg = fs::read_to_string(dir.path().join("reproduced/mortise-fig19/figure.svg")).unwrap();
    assert!(svg.contains("points that the paper states"));

    let record = ["reproduce", "--record", "verdicts.toml"];
    assert!(stdout(dir.path(), &record).starts_with("2 verdicts taken over\n"));
    let file = fs::read_to_string(dir.path().join("verdicts.toml")).unwrap();
    assert!(file.contains("\"floo/fig5\" = [\"agrees\", "), "{file}");
    // A quick run is left out, and what was there stays.
    stdout(dir.path(), FIGURE);
    assert!(stdout(dir.path(), &record).starts_with("2 verdicts taken over\n"));
    assert_eq!(fs::read_to_string(dir.path().join("verdicts.toml")).unwrap(), file);
}

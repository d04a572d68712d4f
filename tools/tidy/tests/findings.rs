//! Each check finds what it is there to find, and leaves alone what it should.

use std::collections::{BTreeMap, BTreeSet};
use trimtab_tidy::{Finding, dependencies, files, includes, links, words};

fn places(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.place.as_str()).collect()
}

#[test]
fn open_ends_are_found_as_words_only() {
    let marker = concat!("TO", "DO");
    let text = format!("// {marker}: later\nlet m{marker} = 1;\n// {marker}S\n({marker})\n");
    assert_eq!(places(&files::check("a.rs", &text)), ["a.rs:1", "a.rs:4"]);
}

#[test]
fn hosts_and_paths_of_one_machine_are_found_in_any_file() {
    let text = format!("see {}/simple\nin {}me/you\n", concat!("pypi", ".org"), "/ho");
    assert_eq!(places(&files::check("notes.txt", &text)), ["notes.txt:1", "notes.txt:2"]);
    assert_eq!(files::check("notes.txt", "a relative home/you is fine\n"), []);
}

#[test]
fn long_sources_are_found_and_long_data_is_not() {
    let text = "x\n".repeat(files::LINES_MAX + 1);
    assert_eq!(places(&files::check("a.rs", &text)), ["a.rs"]);
    assert_eq!(files::check("a.csv", &text), []);
    assert_eq!(files::check("a.rs", &"x\n".repeat(files::LINES_MAX)), []);
}

#[test]
fn a_crate_outside_the_lints_is_found() {
    assert_eq!(places(&files::check_manifest("c/Cargo.toml", "[package]\n")), ["c/Cargo.toml"]);
    assert_eq!(files::check_manifest("c/Cargo.toml", "[lints]\nworkspace = true\n"), []);
    assert_eq!(files::check_manifest("c/Cargo.toml", "[workspace]\n"), [], "one of its own");
}

#[test]
fn an_include_that_leaves_its_crate_is_found() {
    let text = "include_str!(\"../b.sql\");\ninclude_bytes!(\n    \"../../../models/c\"\n);\n\
                include!(concat!(env!(\"OUT_DIR\"), \"/d.rs\"));\n\
                include_str!(concat!(\n    env!(\"CARGO_MANIFEST_DIR\"),\n    \"/../b/e\"\n));\n\
                include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/e\"));\n\
                include_str!(\"../../../../f\");\n";
    let found = includes::check("crates/a/src/x/y.rs", text);
    let from_y = ["crates/a/src/x/y.rs:6", "crates/a/src/x/y.rs:11", "crates/a/src/x/y.rs:2"];
    assert_eq!(places(&found), from_y);
    assert_eq!(places(&includes::check("crates/ab/build/main.rs", text)).len(), 3);
    assert_eq!(includes::check("crates/a/tests/x/y.rs", text), [], "no package compiles it");
    assert_eq!(includes::check("tools/a/src/x/y.rs", text), [], "it is not published");
}

#[test]
fn broken_links_are_found_with_their_line() {
    let pages = BTreeMap::from([
        ("docs/SUMMARY.md".to_owned(), "[A](a.md)\n".to_owned()),
        (
            "docs/a.md".to_owned(),
            "# Two words, `code`\n[ok](#two-words-code)\n[ok](sub/b.md#b)\n[gone](gone.md)\n\
             [no heading](sub/b.md#c)\n[out](../README.md)\n`[code](nowhere.md)`\n\
             [web](https://example.org/x)\n"
                .to_owned(),
        ),
        ("docs/sub/b.md".to_owned(), "# B\n[up](../a.md)\n[far](../../../x)\n".to_owned()),
        ("README.md".to_owned(), "[book](docs/a.md) [folder](docs/sub)\n".to_owned()),
    ]);
    let all: BTreeSet<String> = pages.keys().cloned().collect();
    assert_eq!(
        places(&links::check(&pages, &all)),
        ["docs/a.md:4", "docs/a.md:5", "docs/a.md:6", "docs/sub/b.md:3", "docs/sub/b.md"],
    );
}

#[test]
fn licences_bans_and_sources_are_held_against_the_rules() {
    let rules = dependencies::Rules::parse(
        "[graph]\ntargets = []\n[licenses]\nallow = [\"MIT\", \"Apache-2.0 WITH LLVM-exception\"]\n\
         [bans]\ndeny = [{ crate = \"bad\", reason = \"because\" }]\n",
    )
    .expect("rules");
    let json = r#"{"packages": [
        {"name": "either", "version": "1.0.0", "license": "MIT OR GPL-3.0-only", "source": "registry+x"},
        {"name": "old", "version": "1.0.0", "license": "GPL-3.0/MIT", "source": "registry+x"},
        {"name": "exception", "version": "1.0.0", "license": "Apache-2.0 WITH LLVM-exception", "source": null},
        {"name": "both", "version": "1.0.0", "license": "MIT AND GPL-3.0-only", "source": "registry+x"},
        {"name": "no-exception", "version": "1.0.0", "license": "Apache-2.0", "source": "registry+x"},
        {"name": "silent", "version": "1.0.0", "license": null, "source": "registry+x"},
        {"name": "bad", "version": "1.0.0", "license": "MIT", "source": "registry+x"},
        {"name": "git", "version": "1.0.0", "license": "MIT", "source": "git+https://example.org/x"}
    ]}"#;
    let metadata = dependencies::Metadata::parse(json.as_bytes()).expect("json");
    assert_eq!(
        places(&dependencies::check(&rules, &metadata)),
        ["both 1.0.0", "no-exception 1.0.0", "silent 1.0.0", "bad 1.0.0", "git 1.0.0"],
    );
}

#[test]
fn a_room_that_depends_on_what_it_must_not_is_found_with_the_chain() {
    let rooms = "[rooms.agent]\nwithout = ['server', 'tests-only']\nreason = 'it asks'\n\
                 [rooms.gone]\nwithout = []\nreason = ''\n";
    let rooms = dependencies::Rooms::parse(rooms).expect("rooms");
    let json = |kind: &str| {
        format!(
            r#"{{"packages": [
            {{"id": "a", "name": "agent", "version": "1.0.0", "license": null, "source": null}},
            {{"id": "c", "name": "client", "version": "1.0.0", "license": null, "source": null}},
            {{"id": "s", "name": "server", "version": "1.0.0", "license": null, "source": null}},
            {{"id": "t", "name": "tests-only", "version": "1.0.0", "license": null, "source": null}}
        ], "resolve": {{"nodes": [
            {{"id": "a", "deps": [{{"pkg": "c", "dep_kinds": [{{"kind": null}}]}},
                                  {{"pkg": "t", "dep_kinds": [{{"kind": "dev"}}]}}]}},
            {{"id": "c", "deps": [{{"pkg": "s", "dep_kinds": [{{"kind": {kind}}}]}}]}},
            {{"id": "s", "deps": [{{"pkg": "t", "dep_kinds": [{{"kind": "dev"}}]}}]}},
            {{"id": "t", "deps": []}}
        ]}}}}"#
        )
    };
    let check = |kind: &str| {
        let metadata = dependencies::Metadata::parse(json(kind).as_bytes()).expect("json");
        dependencies::check_rooms(&rooms, &metadata)
    };
    let found = check("null");
    assert_eq!(places(&found), ["agent", "gone"]);
    assert!(found[0].what.ends_with("server (it asks): agent -> client -> server"), "{found:?}");
    assert_eq!(places(&check("\"build\"")), ["agent", "gone"]);
    assert_eq!(places(&check("\"dev\"")), ["gone"]);
}

#[test]
fn words_that_are_out_are_counted_in_any_case_and_as_words() {
    let rules = "[words.beside]\ninstead = 'vs.'\nleft = 2\n[words.\"unless told\"]\ninstead = ''\nleft = 0\n";
    let rules = words::Rules::parse(rules).expect("rules");
    let check = |text: &str| {
        let files = BTreeMap::from([("a.md".to_owned(), text.to_owned())]);
        words::check(&rules, &files).into_iter().map(|f| f.what).collect::<Vec<_>>()
    };
    assert_eq!(check("Beside it. It stands beside, and besides."), [""; 0]);
    let more = check("beside beside beside");
    assert!(more.len() == 1 && more[0].contains("3 times, 2 allowed: write vs."), "{more:?}");
    assert!(check("beside")[0].contains("lower its `left`"), "they may only get fewer");
    assert_eq!(check("beside beside, unless told").len(), 1);
    assert!(words::counts("docs/a.md") && !words::counts("CHANGELOG.md"));
    assert!(!words::counts("tools/tidy/src/words.rs") && !words::counts("a.svg"));
}

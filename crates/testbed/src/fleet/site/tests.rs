use super::*;

/// A shell that runs `script` in place of `trimtab`, and the namespace with which it ends.
fn shell(script: &str, folder: &Path) -> (Process, Namespace) {
    let place = Namespace::current().unwrap();
    let config = folder.join("some.toml");
    let log = folder.join("log");
    let process = Process::start(&place, Path::new("/bin/sh"), &["-c", script], &config, log);
    (process.unwrap(), place)
}

#[test]
fn a_process_that_ends_is_a_problem_with_its_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo first >&2; echo no store >&2; echo >&2; exit 3";
    let (mut process, _place) = shell(script, folder.path());
    let ended = process.wait_for("it does not listen", || None::<()>);
    let message = ended.unwrap_err().to_string();
    assert!(message.contains("some.toml: it ended (exit status: 3)"), "{message}");
    assert!(message.ends_with("the last that it said: no store"), "{message}");
    let folder = tempfile::tempdir().unwrap();
    let (mut silent, _place) = shell("exit 0", folder.path());
    let message = silent.wait_for("x", || None::<()>).unwrap_err().to_string();
    assert!(message.ends_with("(exit status: 0); the last that it said: nothing"), "{message}");
}

#[test]
fn a_process_is_waited_for_until_it_says_what_it_should() {
    let folder = tempfile::tempdir().unwrap();
    let (mut process, _place) = shell("echo \"listens at $1\" >&2; exec sleep 60", folder.path());
    let log = folder.path().join("log");
    let said = process
        .wait_for("it does not listen", || {
            fs::read_to_string(&log).ok().filter(|said| said.contains("listens at"))
        })
        .unwrap();
    // It was given its configuration.
    assert!(said.contains("some.toml"), "{said}");
    process.check().unwrap();
}

#[test]
fn a_process_is_asked_to_end_before_it_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "trap 'echo in order >&2; exit 0' TERM; echo ready >&2; while :; do sleep 0.02; done";
    let (mut process, _place) = shell(script, folder.path());
    let log = folder.path().join("log");
    let said = |what: &str| fs::read_to_string(&log).is_ok_and(|said| said.contains(what));
    process.wait_for("it is not ready", || said("ready").then_some(())).unwrap();
    let begin = Instant::now();
    drop(process);
    assert!(said("in order"), "{:?}", begin.elapsed());
}

#[test]
fn a_program_that_is_not_there_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let place = Namespace::current().unwrap();
    let start = |program: &str, log: PathBuf| {
        Process::start(&place, Path::new(program), &["agent"], folder.path(), log)
    };
    let message = start("/no/such/trimtab", folder.path().join("log")).unwrap_err().to_string();
    assert!(message.contains("no such program"), "{message}");
    let message = start("/bin/true", folder.path().join("no/log")).unwrap_err().to_string();
    assert!(message.contains("cannot write the log of a process"), "{message}");
}

/// `echo` prints the arguments, where the engine prints a token.
#[test]
fn a_token_is_asked_for_with_its_role_and_service() {
    let config = Path::new("engine.toml");
    let echo = Path::new("/bin/echo");
    let edge = add_token(echo, config, "near", Role::Edge, Some("tv")).unwrap();
    assert_eq!(edge, "engine token add near --role edge --service tv --config engine.toml");
    let operator = add_token(echo, config, "me", Role::Operator, None).unwrap();
    assert_eq!(operator, "engine token add me --role operator --config engine.toml");
    // A shell finds no script of the name "engine".
    let refused = add_token(Path::new("/bin/sh"), config, "near", Role::Edge, None).unwrap_err();
    let RealError::Process { process, problem } = &refused else { panic!("{refused}") };
    assert_eq!(process, "trimtab engine token add near --config engine.toml");
    assert!(problem.contains("engine"), "{problem}");
    let missing = add_token(Path::new("/no/such"), config, "near", Role::Edge, None).unwrap_err();
    assert!(missing.to_string().starts_with("cannot make a token of the engine: "), "{missing}");
}

#[test]
fn an_edge_finds_the_engine_by_its_address_on_the_link() {
    assert_eq!(Site::url(Ipv4Addr::new(100, 64, 16, 1)), "http://100.64.16.1:7480");
}

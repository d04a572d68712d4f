//! `trimtab leaderboard`.

use std::path::Path;

use serde::Serialize;
use trimtab_lab::compare::{CompareError, compare};
use trimtab_lab::kept::kept;
use trimtab_lab::leaderboard::cpu::{CpuError, measure};
use trimtab_lab::leaderboard::{
    Board, Card, LeftOut, REFERENCE, Set, SetError, SetScores, folder, score, shipped,
};
use trimtab_lab::report::leaderboard::{page, render};
use trimtab_lab::report::output::write_file;
use trimtab_lab::report::table::Style;
use trimtab_lab::result::RunRecord;
use trimtab_lab::run::Recording;
use trimtab_lab::run::datapath::Datapath;
use trimtab_lab::scenario::Scenario;
use trimtab_steer::scheme::Scheme;

use crate::args::Leaderboard;
use crate::compare::command_line;
use crate::{Failure, datapath, print};

/// Rounds in which processor time is measured, and those of a quick run.
const ROUNDS: [usize; 2] = [9, 3];

pub(crate) fn run(args: &Leaderboard) -> Result<(), Failure> {
    // All that the user gave is checked before the first set runs for minutes.
    let cards: Result<Vec<Card>, _> = args.submit.iter().map(|path| Card::load(path)).collect();
    let cards = cards.map_err(Failure::input)?;
    if let Some(twice) = twice(&cards) {
        return Err(Failure::input(format!("two cards submit {twice}: give one of them")));
    }
    let sets = sets(args, &cards)?;
    // First, since it takes seconds and finds what is wrong with a submission.
    let rounds = ROUNDS[usize::from(args.quick)];
    let cpu = measure(&schemes(&sets), rounds).map_err(|e| match e {
        CpuError::Interrupted(_) => Failure::interrupted("interrupted; nothing ran yet"),
        e => Failure::input(e),
    })?;
    let (mut scores, mut left_out) = (Vec::new(), Vec::new());
    for set in &sets {
        let mut set = set.clone();
        let name = set.datapath.clone();
        let open = |scenario: &Scenario| (datapath::named(&name)?.open)(scenario);
        let Some(path) = opened(&mut set, &mut left_out, open) else { continue };
        scores.push(scored(args, &set, path.as_ref())?);
    }
    if scores.is_empty() {
        return Err(Failure::input("no set ran: the reasons are above"));
    }
    let board = Board::new(scores, cpu, cards, &command_line());
    let board = Board { quick: args.quick, left_out, ..board };
    write(&args.out.join("leaderboard.json"), &board)?;
    let html = page(&board);
    write_file(&args.out.join("index.html"), |out| out.write_all(html.as_bytes()))
        .map_err(Failure::input)?;
    print(&render(&board, Style::of_stdout()))
}

/// What carries out a set, of which this machine cannot run some schemes, or all. What it cannot
/// run keeps nothing else from running.
fn opened(
    set: &mut Set,
    left_out: &mut Vec<LeftOut>,
    open: impl Fn(&Scenario) -> Result<Box<dyn Datapath>, Failure>,
) -> Option<Box<dyn Datapath>> {
    let mut leave_out = |set: &str, cc: Option<&Scheme>, e: Failure| {
        let (what, why) = (cc.map_or("it".to_owned(), ToString::to_string), e.to_string());
        eprintln!("warning: set {set}: {what} does not run: {why}");
        left_out.push(LeftOut { set: set.to_owned(), cc: cc.map(|cc| cc.label().to_owned()), why });
    };
    let all = match open(&set.scenario) {
        Ok(path) => return Some(path),
        Err(e) => e,
    };
    let cannot = |scheme: &Scheme| Some((scheme.clone(), open(&set.of(scheme)).err()?));
    let broken: Vec<(Scheme, Failure)> = set.scenario.cc.iter().filter_map(cannot).collect();
    let is_broken = |cc: &Scheme| broken.iter().any(|(other, _)| other.label() == cc.label());
    let mut left = set.scenario.clone();
    left.cc.retain(|cc| !is_broken(cc));
    let has_reference = left.cc.iter().any(|cc| cc.label() == REFERENCE);
    let path = if has_reference { open(&left) } else { Err(all) };
    match path {
        Ok(path) => {
            set.scenario = left;
            broken.into_iter().for_each(|(cc, e)| leave_out(&set.name, Some(&cc), e));
            Some(path)
        }
        Err(e) => {
            leave_out(&set.name, None, e);
            None
        }
    }
}

/// The first scheme that two cards submit.
fn twice(cards: &[Card]) -> Option<&str> {
    let mut labels: Vec<&str> = cards.iter().map(|card| card.scheme.label()).collect();
    labels.sort_unstable();
    labels.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// The sets that were asked for, with their schemes.
fn sets(args: &Leaderboard, cards: &[Card]) -> Result<Vec<Set>, Failure> {
    let all = args.sets.as_deref().map_or_else(shipped, folder).map_err(Failure::input)?;
    let mut chosen: Vec<Set> = if args.chosen.is_empty() {
        all
    } else {
        let find = |name: &String| Set::find(&all, name).cloned();
        let found: Result<Vec<Set>, SetError> = args.chosen.iter().map(find).collect();
        found.map_err(Failure::input)?
    };
    for wanted in &args.cc {
        let has = |set: &Set| set.scenario.cc.iter().any(|cc| cc.label() == wanted);
        if !chosen.iter().any(has) {
            let advice = "--cc takes schemes of the sets; others need a card, see --submit";
            return Err(Failure::input(format!("no set has the scheme {wanted}: {advice}")));
        }
    }
    for set in &mut chosen {
        let wanted = |cc: &Scheme| args.cc.iter().any(|label| label == cc.label());
        set.scenario.cc.retain(|cc| args.cc.is_empty() || cc.label() == REFERENCE || wanted(cc));
    }
    let quick = |set: Set| if args.quick { set.quick() } else { set };
    Ok(chosen.into_iter().map(|set| quick(set.with(cards))).collect())
}

/// Every scheme of the sets, once.
fn schemes(sets: &[Set]) -> Vec<Scheme> {
    let mut all: Vec<Scheme> = Vec::new();
    for scheme in sets.iter().flat_map(|set| &set.scenario.cc) {
        if all.iter().all(|known| known.label() != scheme.label()) {
            all.push(scheme.clone());
        }
    }
    all
}

/// The scores of a set, of which schemes that have run before do not run again.
fn scored(args: &Leaderboard, set: &Set, path: &dyn Datapath) -> Result<SetScores, Failure> {
    let mut runs = Vec::new();
    for scheme in &set.scenario.cc {
        runs.extend(runs_of(args, set, scheme, path)?);
    }
    score(set, &runs).map_err(Failure::input)
}

fn runs_of(
    args: &Leaderboard,
    set: &Set,
    scheme: &Scheme,
    path: &dyn Datapath,
) -> Result<Vec<RunRecord>, Failure> {
    let scenario = set.of(scheme);
    let file = args.out.join("runs").join(&set.name).join(Set::result_file(scheme));
    if file.exists() {
        return Ok(kept(&file, &scenario).map_err(Failure::input)?.runs);
    }
    if !args.work.quiet {
        eprintln!("{}: {scheme}", set.name);
    }
    let result =
        compare(&scenario, args.work.effort(), Recording::default(), &command_line(), path);
    let comparison = result.map_err(|e| match e {
        CompareError::Interrupted(_) => {
            Failure::interrupted("interrupted; the same command goes on from here")
        }
        e => Failure::input(format!("set {}: {e}", set.name)),
    })?;
    write(&file, &comparison)?;
    Ok(comparison.runs)
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    write_file(path, |out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        out.write_all(b"\n")
    })
    .map_err(Failure::input)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that lacks some algorithms.
    fn machine(lacks: &[&str]) -> impl Fn(&Scenario) -> Result<Box<dyn Datapath>, Failure> {
        let lacks: Vec<String> = lacks.iter().map(|name| (*name).to_owned()).collect();
        move |scenario| match scenario.cc.iter().find(|cc| lacks.iter().any(|l| l == cc.label())) {
            Some(cc) => Err(Failure::input(format!("no {cc} here"))),
            None => (datapath::named("sim")?.open)(scenario),
        }
    }

    fn set() -> Set {
        let text = "about = \"x\"\nschemes = [\"cubic\", \"bbr\", \"vegas\", \"copa:mit\"]\n\
                    [scenario]\ntraces = [\"constant:12Mbit/s\"]\n\
                    [[scenario.app]]\nkind = \"download\"\n";
        Set::parse("mine", text).unwrap()
    }

    #[test]
    fn a_scheme_that_the_machine_lacks_keeps_no_other_from_running() {
        let (mut set, mut left_out) = (set(), Vec::new());
        assert!(opened(&mut set, &mut left_out, machine(&["vegas", "bbr"])).is_some());
        let left: Vec<&str> = set.scenario.cc.iter().map(Scheme::label).collect();
        assert_eq!(left, ["cubic", "copa:mit"]);
        let why: Vec<_> = left_out.iter().map(|one| (one.cc.as_deref(), &*one.why)).collect();
        assert_eq!(why, [(Some("bbr"), "no bbr here"), (Some("vegas"), "no vegas here")]);
    }

    #[test]
    fn without_the_reference_a_set_does_not_run() {
        let (mut set, mut left_out) = (set(), Vec::new());
        assert!(opened(&mut set, &mut left_out, machine(&["cubic", "bbr"])).is_none());
        let all = LeftOut { set: "mine".to_owned(), cc: None, why: "no cubic here".to_owned() };
        assert_eq!(left_out, [all]);
        assert_eq!(set.scenario.cc.len(), 4);
    }
}

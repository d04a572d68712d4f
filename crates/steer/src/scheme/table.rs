//! The table of schemes that are no algorithm of the `cc` crate.

use trimtab_cc::Knob;
use trimtab_cc::astraea::Astraea;
use trimtab_cc::aurora::Aurora;
use trimtab_cc::aurora::mocc::Mocc;
use trimtab_cc::indigo::Indigo;
use trimtab_cc::orca::Orca;
use trimtab_cc::remy::Remy;

use super::SchemeKind::{
    Mortise, Muses, Omniscient, Oracle, OracleDynamic, OracleSelect, Plugin, Resume, Rival, Select,
    Stack, StaticBest, Switch,
};
use super::resume::{RESUME_SETTINGS, Resuming};
use super::{
    MORTISE_SETTINGS, MortiseSettings, MusesPolicy, MusesSettings, OMNISCIENT, PluginKind,
    PluginSettings, Problem, RivalName, RivalSettings, SchemeKind, SelectBound, Selection, StackCc,
    Turns, mortise, searched,
};

/// What a scheme is for, that is no algorithm of the `cc` crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A policy of its own, which was learnt.
    Learnt,
    /// A file of the user's own.
    Plugin,
    /// Turns knobs or changes the algorithm while the flow runs.
    Steering,
    /// Comes with a transport, as a rival and a yardstick.
    Stack,
    /// Changes how connections start.
    Start,
    /// Shows what something costs, and serves nobody better.
    Experiment,
    /// No real sender can reach it.
    Bound,
}

impl Role {
    /// Its name in lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Learnt => "learnt",
            Self::Plugin => "plugin",
            Self::Steering => "steering",
            Self::Stack => "stack",
            Self::Start => "start",
            Self::Experiment => "experiment",
            Self::Bound => "bound",
        }
    }
}

/// A scheme that is no algorithm of the `cc` crate.
#[derive(Clone, Copy, Debug)]
pub struct SchemeEntry {
    /// How it is written on the command line.
    pub name: &'static str,
    /// What it is for.
    pub role: Role,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its numeric settings.
    pub settings: &'static [&'static Knob],
    /// Reads what follows its name.
    pub(super) parse: fn(&str) -> Result<SchemeKind, Problem>,
}

impl SchemeEntry {
    /// The first word of its name, which is what reports tell its role by.
    pub(super) fn key(&self) -> &'static str {
        self.name.split(':').next().unwrap_or(self.name)
    }

    /// Its second word; `None` where there stands what the user gives, such as `CC`.
    pub(super) fn second(&self) -> Option<&'static str> {
        let (_, second) = self.name.split_once(':')?;
        second.starts_with(char::is_lowercase).then_some(second)
    }
}

/// Learnt policies, steering, those of stacks, how connections start, experiments and bounds, in the
/// order in which they are listed.
pub static SCHEMES: [SchemeEntry; 25] = [
    SchemeEntry {
        name: "muses",
        role: Role::Learnt,
        about: "decision trees that multiply the window every 10 ms; every 10 s the tree that fits \
                the path is chosen; :lstm is the policy from which they were distilled, \
                :model=FILE another model; :safe=CC, at the end, names the fallback where the path \
                is unlike training or the window runs away (default: copa:mvfst), or none",
        source: "Zhong et al., INFOCOM 2022",
        settings: &[],
        parse: |text| Ok(MusesSettings::parse(text, MusesPolicy::Trees).map(Muses)?),
    },
    SchemeEntry {
        name: "treeg",
        role: Role::Learnt,
        about: "the same with a single tree for all paths; takes :model=FILE and :safe=CC",
        source: "Zhong et al., INFOCOM 2022, section IV-A",
        settings: &[],
        parse: |text| Ok(MusesSettings::parse(text, MusesPolicy::Global).map(Muses)?),
    },
    SchemeEntry {
        name: "remycc",
        role: Role::Learnt,
        about: "a table that a program has made says what each acknowledgement does to window and \
                pacing; :model=FILE.dna reads one that Remy wrote",
        source: "Winstein and Balakrishnan, SIGCOMM 2013",
        settings: &[&Remy::KNOBS[0]],
        parse: |text| Ok(RivalSettings::parse(text, RivalName::Remy).map(Rival)?),
    },
    SchemeEntry {
        name: "indigo",
        role: Role::Learnt,
        about: "an LSTM that changes the window every 10 ms; :model=FILE has the authors' weights, \
                which the user converts: `python -m trimtab.rivals --help`",
        source: "Yan et al., ATC 2018",
        settings: &[&Indigo::KNOBS[0]],
        parse: |text| Ok(RivalSettings::parse(text, RivalName::Indigo).map(Rival)?),
    },
    SchemeEntry {
        name: "aurora",
        role: Role::Learnt,
        about: "a network that changes the rate twice a round trip; :model=FILE has the authors' \
                weights, which the user converts: `python -m trimtab.rivals --help`",
        source: "Jay et al., ICML 2019",
        settings: &[&Aurora::KNOBS[0], &Aurora::KNOBS[1], &Aurora::KNOBS[2], &Aurora::KNOBS[3]],
        parse: |text| Ok(RivalSettings::parse(text, RivalName::Aurora).map(Rival)?),
    },
    SchemeEntry {
        name: "mocc",
        role: Role::Learnt,
        about: "Aurora whose network sees what throughput, delay and loss are worth; \
                :model=FILE has the authors' weights, which the user converts: \
                `python -m trimtab.rivals --help`",
        source: "Ma et al., EuroSys 2022",
        settings: &[
            &Mocc::KNOBS[0],
            &Mocc::KNOBS[1],
            &Mocc::KNOBS[2],
            &Mocc::KNOBS[3],
            &Mocc::KNOBS[4],
            &Mocc::KNOBS[5],
            &Mocc::KNOBS[6],
        ],
        parse: |text| Ok(RivalSettings::parse(text, RivalName::Mocc).map(Rival)?),
    },
    SchemeEntry {
        name: "orca",
        role: Role::Learnt,
        about: "a network that multiplies CUBIC's window every 20 ms; :model=FILE has the authors' \
                weights, which the user converts: `python -m trimtab.rivals --help`",
        source: "Abbasloo, Yen and Chao, SIGCOMM 2020",
        settings: &[&Orca::KNOBS[0], &Orca::KNOBS[1]],
        parse: |text| Ok(RivalSettings::parse(text, RivalName::Orca).map(Rival)?),
    },
    SchemeEntry {
        name: "astraea",
        role: Role::Learnt,
        about: "a network that moves the window by up to 2.5% every 30 ms, learnt to be fair; \
                :model=FILE has the authors' weights, which the user converts: \
                `python -m trimtab.rivals --help`",
        source: "Liao et al., EuroSys 2024",
        settings: &[&Astraea::KNOBS[0], &Astraea::KNOBS[1]],
        parse: |text| Ok(RivalSettings::parse(text, RivalName::Astraea).map(Rival)?),
    },
    SchemeEntry {
        name: "plugin:FILE",
        role: Role::Plugin,
        about: "a shared library of your own, by the interface of trimtab_plugin.h, which \
                `trimtab cc header` prints; knobs follow, e.g. plugin:./mine.so:gain=2",
        source: "yours",
        settings: &[],
        parse: |text| Ok(PluginSettings::parse(PluginKind::Library, text).map(Plugin)?),
    },
    SchemeEntry {
        name: "python:FILE",
        role: Role::Plugin,
        about: "a Python class of your own, asked once per monitor interval or for every \
                acknowledgement; :CLASS names it where the file has several, and knobs follow",
        source: "yours",
        settings: &[],
        parse: |text| Ok(PluginSettings::parse(PluginKind::Python, text).map(Plugin)?),
    },
    SchemeEntry {
        name: "onnx:FILE",
        role: Role::Plugin,
        about: "an ONNX model of your own; the TOML file of the same name lists what it observes \
                and what its output means",
        source: "yours",
        settings: &[],
        parse: |text| Ok(PluginSettings::parse(PluginKind::Onnx, text).map(Plugin)?),
    },
    SchemeEntry {
        name: "mortise",
        role: Role::Steering,
        about: "Copa whose delta is steered continuously by the application's QoE model; :bbr3, \
                :vivace or :cubic is that algorithm, how bold it is steered by sigma alone; :paper is \
                Mortise as it was published",
        source: "Mortise",
        settings: &MORTISE_SETTINGS,
        parse: |text| Ok(mortise::parse(text)?),
    },
    SchemeEntry {
        name: "mortise-disc",
        role: Role::Steering,
        about: "Mortise with five values of delta only",
        source: "Mortise section 5.1",
        settings: &MORTISE_SETTINGS,
        parse: |text| Ok(MortiseSettings::parse(text, true).map(Mortise)?),
    },
    SchemeEntry {
        name: "floo",
        role: Role::Steering,
        about: "a policy learnt by PPO chooses the algorithm every 12 s, or every :every=TIME; \
                :counterfactual is the policy learnt from forks of the simulator, :shared the one \
                that learnt so next to rivals, :paper the one among the paper's four algorithms, \
                :model=FILE another one; :part hands over the window only; :safe=CC, at the end, \
                names the fallback where the policy declines",
        source: "Floo",
        settings: &[],
        parse: |text| Ok(Selection::floo(text, false).map(Select)?),
    },
    SchemeEntry {
        name: "floo+mortise",
        role: Role::Steering,
        about: "both: the policy learnt from forks chooses the algorithm, and Mortise steers delta \
                while Copa runs; same settings as floo",
        source: "Floo and Mortise",
        settings: &[],
        parse: |text| Ok(Selection::floo(text, true).map(Select)?),
    },
    SchemeEntry {
        name: "select:RULE",
        role: Role::Steering,
        about: "the algorithm with the largest utility of throughput, delay and loss, each tried \
                for a period: power, power-loss, vivace or throughput",
        source: "Floo section 2.1, table 1",
        settings: &[],
        parse: |text| Ok(Selection::rule(text).map(Select)?),
    },
    SchemeEntry {
        name: "select:antelope",
        role: Role::Steering,
        about: "the algorithm for which boosted trees predict the largest reward of throughput, \
                delay and loss; a new one has to win twice in a row; :paper chooses among the \
                paper's six, :copa among settings of Copa; takes :every=TIME, :part, \
                :model=FILE, and :safe=CC at the end",
        source: "Zhou et al., ICNP 2021",
        settings: &[],
        parse: |text| Ok(Selection::antelope(text).map(Select)?),
    },
    SchemeEntry {
        name: "noq:CC",
        role: Role::Stack,
        about: "the cubic, newreno or bbr3 that the QUIC stack noq brings itself; on --datapath \
                quic-virtual and quic only",
        source: "noq-proto",
        settings: &[],
        parse: |text| Ok(StackCc::noq(text).map(Stack)?),
    },
    SchemeEntry {
        name: "resume:CC",
        role: Role::Start,
        about: "Careful Resume: connections of this algorithm or steering jump to half of the \
                window that the path is known to carry, and retreat where it does not; takes \
                :cwnd=SIZE,rtt=TIME of the path, e.g. resume:cwnd=600KB,rtt=50ms:cubic",
        source: "RFC 9959",
        settings: &RESUME_SETTINGS,
        parse: |text| Ok(Resuming::parse(text).map(Resume)?),
    },
    SchemeEntry {
        name: "switch:CC,CC",
        role: Role::Experiment,
        about: "algorithms in turn on the same flow, each for 20 s or for :every=TIME; :part hands \
                over the window only",
        source: "Floo section 5.5.1",
        settings: &[],
        parse: |text| Ok(Turns::parse(text).map(Switch)?),
    },
    SchemeEntry {
        name: "static-best",
        role: Role::Bound,
        about: "bound: the best single algorithm of cubic, bbr, copa and westwood for each run, or \
                of others, e.g. static-best:cubic,copa:mvfst, or of a shipped policy's, e.g. \
                static-best:counterfactual",
        source: "Floo section 5.2, Static_Opt",
        settings: &[],
        parse: |text| Ok(SelectBound::single(text).map(StaticBest)?),
    },
    SchemeEntry {
        name: "oracle:select",
        role: Role::Bound,
        about: "bound: every 12 s, or every :every=TIME, the best of these algorithms in \
                hindsight, or of others, e.g. oracle:select:cubic,bbr,copa:mvfst or \
                oracle:select:counterfactual",
        source: "Floo, judged by the whole run",
        settings: &[],
        parse: |text| Ok(SelectBound::course(text).map(OracleSelect)?),
    },
    SchemeEntry {
        name: "oracle:CC",
        role: Role::Bound,
        about: "bound: the best constant value of the algorithm's knob for each run",
        source: "Mortise section 5.2",
        settings: &[],
        parse: |text| searched("oracle", text).map(Oracle),
    },
    SchemeEntry {
        name: "oracle-dynamic:CC",
        role: Role::Bound,
        about: "bound: at every interval the best value of the knob in hindsight",
        source: "Mortise section 5.2, judged by the whole run",
        settings: &[],
        parse: |text| searched("oracle-dynamic", text).map(OracleDynamic),
    },
    SchemeEntry {
        name: OMNISCIENT,
        role: Role::Bound,
        about: "bound: a sender that sees the trace",
        source: "Muses equation 1",
        settings: &[],
        parse: |text| if text.is_empty() { Ok(Omniscient) } else { Err(Problem::NoSettings) },
    },
];

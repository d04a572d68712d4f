//! Rivals with a file: `remycc`, `remycc:model=FILE:cap=200`, `indigo:model=FILE`,
//! `aurora:model=FILE`, `mocc:model=FILE`, `orca:model=FILE`, `astraea:model=FILE`, and their texts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trimtab_cc::astraea::Astraea;
use trimtab_cc::aurora::Aurora;
use trimtab_cc::aurora::mocc::Mocc;
use trimtab_cc::indigo::Indigo;
use trimtab_cc::orca::Orca;
use trimtab_cc::remy::Remy;
use trimtab_cc::{Knob, KnobError};

use super::muses::PolicyError;
use crate::rival::{AuroraMlp, IndigoLstm, LeakyMlp, MoccMlp, Model, Rival, read_dna};

/// Which rival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RivalName {
    /// A table of rules that a program has made.
    Remy,
    /// A network learnt by imitation.
    Indigo,
    /// A network learnt by reinforcement.
    Aurora,
    /// Such a network that sees what counts.
    Mocc,
    /// Such a network over CUBIC.
    Orca,
    /// Such a network, learnt by many flows at once.
    Astraea,
}

/// Its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct RivalSettings {
    /// Which.
    pub rival: RivalName,
    /// Its file; `None` for the table that ships with the project.
    pub model: Option<PathBuf>,
    /// The knobs that are set.
    pub knobs: Vec<(&'static str, f64)>,
}

/// Why a text names no such scheme.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum RivalTextError {
    #[error("no setting {setting:?}; there are model=FILE and {}", names(.knobs))]
    Setting { setting: String, knobs: &'static [Knob] },
    #[error(
        "no model ships with the project: convert the authors' (`python -m trimtab.rivals --help`), \
         and name it with model=FILE"
    )]
    NoFile,
    #[error("{setting:?}: {problem}")]
    Knob { setting: String, problem: KnobError },
}

fn names(knobs: &[Knob]) -> String {
    let all: Vec<String> = knobs.iter().map(|knob| format!("{}=NUMBER", knob.name)).collect();
    all.join(", ")
}

impl RivalName {
    /// Its knobs.
    pub fn knobs(self) -> &'static [Knob] {
        match self {
            Self::Remy => Remy::KNOBS,
            Self::Indigo => Indigo::KNOBS,
            Self::Aurora => Aurora::KNOBS,
            Self::Mocc => Mocc::KNOBS,
            Self::Orca => Orca::KNOBS,
            Self::Astraea => Astraea::KNOBS,
        }
    }

    /// The file that ships with the project, its name and its bytes; `None` where the user has to
    /// give one.
    fn shipped(self) -> Option<(&'static str, &'static [u8])> {
        match self {
            Self::Remy => Some(("remycc.dna", include_bytes!("../../models/remycc.dna"))),
            Self::Indigo | Self::Aurora | Self::Mocc | Self::Orca | Self::Astraea => None,
        }
    }
}

impl RivalSettings {
    /// Reads what follows the rival's name.
    pub(super) fn parse(text: &str, rival: RivalName) -> Result<Self, RivalTextError> {
        let mut settings = Self { rival, model: None, knobs: Vec::new() };
        for setting in text.split(':').map(str::trim).filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            if name == "model" && !value.is_empty() {
                settings.model = Some(value.into());
                continue;
            }
            let knobs = rival.knobs();
            let wrong = || RivalTextError::Setting { setting: setting.to_owned(), knobs };
            let knob = knobs.iter().find(|knob| knob.name == name).ok_or_else(wrong)?;
            let value = value.trim().parse().map_err(|_| wrong())?;
            let refuse = |problem| RivalTextError::Knob { setting: setting.to_owned(), problem };
            knob.check(value).map_err(refuse)?;
            settings.knobs.push((knob.name, value));
        }
        if settings.model.is_none() && rival.shipped().is_none() {
            return Err(RivalTextError::NoFile);
        }
        Ok(settings)
    }

    /// Reads the rival's file by `read`, unless it ships.
    ///
    /// # Errors
    /// That of `read`, or what `unusable` makes of the file's bytes.
    pub fn rival<E>(
        &self,
        read: impl FnOnce(&Path) -> Result<Vec<u8>, E>,
        unusable: impl FnOnce(&Path, PolicyError) -> E,
    ) -> Result<Rival, E> {
        let (path, bytes) = match (&self.model, self.rival.shipped()) {
            (Some(path), _) => (path.as_path(), read(path)?),
            (None, Some((name, bytes))) => (Path::new(name), bytes.to_vec()),
            (None, None) => unreachable!("parse() asks for a file where none ships"),
        };
        let model = self.model_of(&bytes).map_err(|problem| unusable(path, problem))?;
        Ok(Rival::new(model, self.knobs.clone()))
    }

    fn model_of(&self, bytes: &[u8]) -> Result<Model, PolicyError> {
        Ok(match self.rival {
            RivalName::Remy => Model::Remy(Arc::new(read_dna(bytes)?)),
            RivalName::Indigo => Model::Indigo(Arc::new(IndigoLstm::parse(bytes)?)),
            RivalName::Aurora => Model::Aurora(Arc::new(AuroraMlp::parse(bytes)?)),
            RivalName::Mocc => Model::Mocc(Arc::new(MoccMlp::parse(bytes)?)),
            RivalName::Orca => Model::Orca(Arc::new(LeakyMlp::orca(bytes)?)),
            RivalName::Astraea => Model::Astraea(Arc::new(LeakyMlp::astraea(bytes)?)),
        })
    }
}

#[cfg(test)]
mod tests {
    use trimtab_cc::{Config, get_knob};

    use super::super::{Demand, Scheme, SchemeKind};
    use super::*;

    #[test]
    fn a_file_and_knobs_in_any_order() {
        for text in ["remycc:cap=80:model=out/mine.dna", "remycc:model=out/mine.dna:cap=80"] {
            let scheme: Scheme = text.parse().unwrap();
            let SchemeKind::Rival(settings) = scheme.kind() else { panic!("{text} is a scheme") };
            assert_eq!(settings.model, Some("out/mine.dna".into()));
            assert_eq!(settings.knobs, [("cap", 80.0)]);
            assert!(matches!(scheme.kind().demand(), Demand::Network));
            assert!(!scheme.is_steered() && !scheme.is_bound());
        }
    }

    #[test]
    fn mistakes_say_what_to_do() {
        let why = |text: &str| text.parse::<Scheme>().unwrap_err().to_string();
        assert!(why("remycc:mine.dna").contains("there are model=FILE and cap=NUMBER"));
        assert!(why("aurora:step=0.05").contains("name it with model=FILE"));
        for rival in ["indigo", "mocc", "orca", "astraea:cap=80"] {
            assert!(why(rival).contains("name it with model=FILE"), "{rival}");
        }
        assert!(why("orca:step=2").contains("interval=NUMBER, cap=NUMBER"));
        assert!(why("remycc:cap=1").contains("outside its range 4 to 1000000"));
    }

    #[test]
    fn the_shipped_file_is_sound_and_knobs_are_set() {
        let settings = RivalSettings::parse("cap=80", RivalName::Remy).unwrap();
        let rival = settings.rival(|path| Err(path.to_owned()), |path, _| path.to_owned()).unwrap();
        assert_eq!(get_knob(&rival.build(&Config::default()), "cap"), Some(80.0));
    }

    #[test]
    fn a_file_that_is_read_and_of_no_use_is_named() {
        let why = |rival, bytes: &[u8]| {
            let settings = RivalSettings::parse("model=x.st", rival).unwrap();
            settings
                .rival(|_| Ok(bytes.to_vec()), |path, why| format!("{}: {why}", path.display()))
                .unwrap_err()
        };
        let nothing = why(RivalName::Indigo, b"nothing");
        assert!(nothing.starts_with("x.st: it is no safetensors file"), "{nothing}");
        let astraea = include_bytes!("../../seeds/astraea/drawn");
        let other = why(RivalName::Orca, astraea);
        assert!(other.starts_with("x.st: it is no trimtab-orca-mlp model"), "{other}");
    }

    #[test]
    fn a_file_of_the_right_kind_makes_its_algorithm() {
        fn made(rival: RivalName, text: &str, drawn: &[u8]) -> trimtab_cc::Controller {
            let settings = RivalSettings::parse(text, rival).unwrap();
            let rival = settings.rival(|_| Ok(drawn.to_vec()), |_, why| why.to_string());
            rival.unwrap().build(&Config::default())
        }
        let drawn = include_bytes!("../../seeds/orca/drawn");
        let cca = made(RivalName::Orca, "model=x.st:interval=40", drawn);
        assert_eq!((cca.name(), get_knob(&cca, "interval")), ("orca", Some(40.0)));
        let drawn = include_bytes!("../../seeds/astraea/drawn");
        let cca = made(RivalName::Astraea, "interval=40:model=x.st", drawn);
        assert_eq!((cca.name(), get_knob(&cca, "interval")), ("astraea", Some(40.0)));
        let drawn = include_bytes!("../../seeds/mocc/drawn");
        let cca = made(RivalName::Mocc, "model=x.st:delay=0.8:step=0.05", drawn);
        assert_eq!((cca.name(), get_knob(&cca, "delay")), ("mocc", Some(0.8)));
    }
}

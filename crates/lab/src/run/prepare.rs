//! Everything that runs share, read and checked before the first one starts, so that a mistake shows
//! at once and not after minutes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use trimtab_apps::{App, AppError, BulkConfig, Recipe, Session, Settings};
use trimtab_net::Capacity;
use trimtab_plugin::{Plug, PluginError};
use trimtab_qoe::{FactorError, Factors, FormulaError, Model};
use trimtab_steer::Unusable;
use trimtab_steer::muses::Policy;
use trimtab_steer::rival::Rival;
use trimtab_steer::scheme::{
    By, LearntModel, MusesPolicy, MusesSettings, PluginSettings, PolicyError, RivalSettings,
    Scheme, SchemeKind, Selection,
};
use trimtab_steer::select::ModelError;
use trimtab_units::Duration;

use crate::result::TraceOrigin;
use crate::run::links;
use crate::run::suits::unsuited;
use crate::scenario::{AppKind, AppSettings, Competitor, Plan, Scenario};

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The application cannot be made.
    #[error(transparent)]
    App(#[from] AppError),
    /// The QoE formula is wrong.
    #[error("QoE of {app}: {problem}\n{pointer}")]
    Formula {
        /// The application.
        app: String,
        /// What is wrong, with the column.
        problem: FormulaError,
        /// The formula with a mark below the place.
        pointer: String,
    },
    /// The QoE model does not suit the application.
    #[error("QoE of {app}: {problem}")]
    Unsuited {
        /// The application.
        app: String,
        /// What is wrong, and what suits.
        problem: String,
    },
    /// A factor of the QoE formula cannot be set.
    #[error("factor {name} of {app}: {problem}")]
    Factor {
        /// The application.
        app: String,
        /// The factor.
        name: String,
        /// What is wrong.
        problem: FactorError,
    },
    /// The file of a learnt policy cannot be read.
    #[error(
        "{scheme}: the model {} cannot be read: {cause}; name another with {name}:model=FILE, or \
         what is to run without it with safe=CC",
        path.display()
    )]
    ModelFile {
        /// The scheme.
        scheme: String,
        /// Its name without settings.
        name: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file of a learnt policy is none that can be used.
    #[error("{scheme}: {}: {problem}", path.display())]
    Model {
        /// The scheme.
        scheme: String,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: ModelError,
    },
    /// The file of a policy of Muses, or of a rival, cannot be read.
    #[error("{scheme}: the model {} cannot be read: {cause}; name another with {name}:model=FILE", path.display())]
    PolicyFile {
        /// The scheme.
        scheme: String,
        /// Its name without settings.
        name: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file of a policy of Muses, or of a rival, is none that can be used.
    #[error("{scheme}: {}: {problem}", path.display())]
    Policy {
        /// The scheme.
        scheme: String,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: PolicyError,
    },
    /// An algorithm from outside cannot be used.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// An algorithm from outside shares its path with a bound that copies the world.
    #[error(
        "{bound} tries alternatives on copies of a run, and {plugin} next to it cannot be copied: \
         give its table a clone function, or leave out the bound"
    )]
    Forks {
        /// The bound.
        bound: String,
        /// The algorithm from outside.
        plugin: String,
    },
}

/// An application with its model and what it replays.
#[derive(Clone, Debug)]
pub struct PreparedApp {
    /// Its settings.
    pub settings: AppSettings,
    /// The QoE model that scores it and steers for it.
    pub model: Model,
    /// Values of the model's named factors.
    pub factors: Factors,
    /// How to make its clients.
    recipe: Recipe,
}

/// A plan with its applications ready.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The plan.
    pub plan: Plan,
    /// Its applications.
    pub apps: Vec<PreparedApp>,
    /// What competitors with a QoE model of their own are steered for.
    goals: Vec<PreparedApp>,
    /// What was learnt of its schemes that select.
    models: Vec<(By, Result<LearntModel, Unusable>)>,
    /// Those of Muses, by kind and file.
    policies: BTreeMap<(MusesPolicy, PathBuf), Policy>,
    /// The algorithms from outside.
    plugs: Vec<(PluginSettings, Plug)>,
    rivals: Vec<(RivalSettings, Rival)>,
    warnings: Vec<String>,
}

/// Reads every workload and parses every formula.
///
/// # Errors
/// The first that is wrong.
pub fn prepare(plan: &Plan) -> Result<Prepared, PrepareError> {
    let apps = plan.scenario.app.iter().map(PreparedApp::new).collect::<Result<_, _>>()?;
    let goals = goals(&plan.scenario)?;
    let (mut models, mut warnings) = (Vec::new(), Vec::new());
    let (mut policies, mut plugs, mut rivals) = (BTreeMap::new(), Vec::new(), Vec::new());
    for scheme in plan.scenario.schemes() {
        if let SchemeKind::Muses(settings) = scheme.kind().governing() {
            let (learnt, path) = settings.key();
            if let Entry::Vacant(place) = policies.entry((learnt, path.to_owned())) {
                place.insert(policy(scheme.label(), settings)?);
            }
        }
        if let SchemeKind::Plugin(settings) = scheme.kind()
            && plugs.iter().all(|(other, _)| other != settings)
        {
            plugs.push((settings.clone(), trimtab_plugin::load(scheme.label(), settings)?));
        }
        if let SchemeKind::Rival(settings) = scheme.kind().governing() {
            let label = scheme.label();
            let read = settings.rival(
                |path| read_policy(label, path),
                |path, problem| unusable(label, path, problem),
            );
            rivals.push((settings.clone(), read?));
        }
        let SchemeKind::Select(selection) = scheme.kind().governing() else { continue };
        let Some(path) = selection.by.file() else { continue };
        let model = match (learnt(scheme.label(), selection, path), &selection.safe) {
            (Ok(model), _) => Ok(model),
            // A user who names a fallback accepts that the model is missing.
            (Err((why, problem)), Some(safe)) => {
                let safe = safe.algorithm().name;
                warnings.push(format!("{problem}; {safe} runs in its place"));
                Err(why)
            }
            (Err((_, problem)), None) => return Err(problem),
        };
        models.push((selection.by.clone(), model));
    }
    check_forks(&plan.scenario, &plugs)?;
    Ok(Prepared { plan: plan.clone(), apps, goals, models, policies, plugs, rivals, warnings })
}

/// Whether every algorithm from outside that shares its path with a bound can be copied with it.
fn check_forks(scenario: &Scenario, plugs: &[(PluginSettings, Plug)]) -> Result<(), PrepareError> {
    let forks = |scheme: &&Scheme| {
        matches!(scheme.kind(), SchemeKind::OracleDynamic(_) | SchemeKind::OracleSelect(_))
    };
    let is_stuck = |scheme: &&Scheme| match scheme.kind() {
        SchemeKind::Plugin(of) => plugs.iter().any(|(other, plug)| other == of && !plug.forks()),
        _ => false,
    };
    let bound = scenario.cc.iter().find(forks);
    let stuck = scenario.competitors().map(|competitor| &competitor.cc).find(is_stuck);
    match (bound, stuck) {
        (Some(bound), Some(plugin)) => Err(PrepareError::Forks {
            bound: bound.label().to_owned(),
            plugin: plugin.label().to_owned(),
        }),
        _ => Ok(()),
    }
}

/// What the competitors of a scenario are steered for, where they say so.
fn goals(scenario: &Scenario) -> Result<Vec<PreparedApp>, PrepareError> {
    let goal = |competitor: &Competitor| {
        let settings = AppSettings {
            name: Some(format!("competitor {}", competitor.cc.label())),
            qoe: Some(competitor.qoe.clone()?),
            ..AppSettings::new(competitor.app)
        };
        Some(PreparedApp::new(&settings))
    };
    scenario.competitors().filter_map(goal).collect()
}

/// The policy of a selection, or why there is none, in short and in full.
fn learnt(
    scheme: &str,
    selection: &Selection,
    path: &Path,
) -> Result<LearntModel, (Unusable, PrepareError)> {
    let bytes = match selection.by.shipped() {
        Some(bytes) => bytes.to_vec(),
        None => read_model(scheme, &selection.by, path)
            .map_err(|problem| (Unusable::Missing, problem))?,
    };
    selection.by.read(&bytes).map_err(|problem| {
        let why = problem.unusable();
        let (scheme, path) = (scheme.to_owned(), path.to_owned());
        (why, PrepareError::Model { scheme, path, problem })
    })
}

/// The policy of a scheme of Muses.
fn policy(scheme: &str, settings: &MusesSettings) -> Result<Policy, PrepareError> {
    let (_, path) = settings.key();
    let bytes = match &settings.model {
        None => settings.shipped().1.to_vec(),
        Some(path) => read_policy(scheme, path)?,
    };
    settings.policy(bytes).map_err(|problem| unusable(scheme, path, problem))
}

fn read_policy(scheme: &str, path: &Path) -> Result<Vec<u8>, PrepareError> {
    std::fs::read(path).map_err(|cause| PrepareError::PolicyFile {
        scheme: scheme.to_owned(),
        name: scheme.split(':').next().unwrap_or_default().to_owned(),
        path: path.to_owned(),
        cause,
    })
}

fn unusable(scheme: &str, path: &Path, problem: PolicyError) -> PrepareError {
    PrepareError::Policy { scheme: scheme.to_owned(), path: path.to_owned(), problem }
}

impl Prepared {
    /// The learnt policy of a scheme of Muses.
    ///
    /// # Panics
    /// The scheme is not one of the plan.
    pub fn policy(&self, settings: &MusesSettings) -> &Policy {
        let (learnt, path) = settings.key();
        &self.policies[&(learnt, path.to_owned())]
    }

    /// An algorithm from outside.
    ///
    /// # Panics
    /// The scheme is not one of the plan.
    pub(crate) fn plug(&self, settings: &PluginSettings) -> &Plug {
        let found = self.plugs.iter().find(|(other, _)| other == settings);
        &found.unwrap_or_else(|| unreachable!("it was loaded before the first run")).1
    }

    /// The first algorithm from outside that cannot be copied, by its name.
    pub fn plug_without_copies(&self) -> Option<&str> {
        self.plugs
            .iter()
            .find(|(_, plug)| !plug.forks())
            .map(|(_, plug)| plug.spec().algorithm().name)
    }

    /// Whether all algorithms from outside have worked so far.
    ///
    /// # Errors
    /// One has failed in a run: that run counts for nothing.
    pub fn check_plugs(&self) -> Result<(), PluginError> {
        self.plugs.iter().try_for_each(|(_, plug)| plug.check())
    }

    /// A rival with its file.
    ///
    /// # Panics
    /// The scheme is not one of the plan.
    pub fn rival(&self, settings: &RivalSettings) -> &Rival {
        let read = self.rivals.iter().find(|(other, _)| other == settings);
        &read.unwrap_or_else(|| panic!("{settings:?} is no scheme of the plan")).1
    }

    /// The application whose users a competitor of an application is steered for.
    pub(crate) fn goal<'a>(
        &'a self,
        competitor: &Competitor,
        app: &'a PreparedApp,
    ) -> &'a PreparedApp {
        let is_its = |goal: &&PreparedApp| {
            competitor.qoe.is_some()
                && (goal.settings.kind, &goal.settings.qoe) == (competitor.app, &competitor.qoe)
        };
        self.goals.iter().find(is_its).unwrap_or(app)
    }

    /// What was learnt of a scheme that selects.
    pub(crate) fn learnt(&self, by: &By) -> Result<LearntModel, Unusable> {
        let read = self.models.iter().find(|(other, _)| other == by);
        read.map_or(Err(Unusable::Missing), |(_, model)| model.clone())
    }

    /// What is not as it was asked for, and what is done about it: to be told once, before the runs.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The checksum of every trace.
    pub fn origins(&self) -> Vec<TraceOrigin> {
        let origin = |(t, link): (&crate::scenario::NamedTrace, &Capacity)| TraceOrigin {
            trace: t.name.clone(),
            sha256: links::checksum(&t.source, link),
        };
        self.plan.traces.iter().zip(&self.plan.links).map(origin).collect()
    }
}

impl PreparedApp {
    /// Reads its workload and parses its formula.
    ///
    /// # Errors
    /// Either is wrong.
    pub fn new(settings: &AppSettings) -> Result<Self, PrepareError> {
        let app = settings.label().to_owned();
        let model = match &settings.qoe {
            None => default_model(settings.kind),
            Some(text) => {
                let names: Vec<&str> = settings.factors.keys().map(String::as_str).collect();
                let model =
                    Model::parse(text, &names).map_err(|problem| PrepareError::Formula {
                        app: app.clone(),
                        pointer: problem.pointer(text),
                        problem,
                    })?;
                if let Some(problem) = unsuited(settings, text, &model) {
                    return Err(PrepareError::Unsuited { app, problem });
                }
                model
            }
        };
        let mut factors = Factors::new();
        for (name, &value) in &settings.factors {
            factors.set_named(name, value).map_err(|problem| PrepareError::Factor {
                app: app.clone(),
                name: name.clone(),
                problem,
            })?;
        }
        let recipe = settings.kind.recipe(&settings.settings)?;
        Ok(Self { settings: settings.clone(), model, factors, recipe })
    }

    /// A client that has done nothing yet, of this application or, as a competitor's, of another kind
    /// at its defaults. What is drawn goes by `seed`.
    pub fn client(&self, kind: AppKind, length: Duration, seed: u64) -> App {
        let session = Session { length, seed, quantile: None };
        if kind == self.settings.kind {
            return self.recipe.client(&session);
        }
        // Without settings no application can refuse.
        let recipe = kind.recipe(&Settings::default());
        recipe.as_ref().unwrap_or(&self.recipe).client(&session)
    }

    /// As [`client`](Self::client), a client that asks for nothing more after this length.
    pub fn client_until(&self, kind: AppKind, length: Duration, seed: u64) -> App {
        if kind == AppKind::bulk() {
            return App::bulk(&BulkConfig { length: Some(length), ..BulkConfig::default() });
        }
        self.client(kind, length, seed)
    }
}

/// The model of an application that names none.
fn default_model(kind: AppKind) -> Model {
    let name = kind.info().models.first();
    let built_in = Model::BUILT_IN.iter().find(|model| name == Some(&model.name));
    built_in.map_or_else(Model::download, |model| (model.make)())
}

fn read_model(scheme: &str, by: &By, path: &Path) -> Result<Vec<u8>, PrepareError> {
    // Floo's name may be that of both steerings.
    let name = match by {
        By::Antelope(_) => "select:antelope",
        _ => scheme.split(':').next().unwrap_or_default(),
    };
    std::fs::read(path).map_err(|cause| PrepareError::ModelFile {
        scheme: scheme.to_owned(),
        name: name.to_owned(),
        path: path.to_owned(),
        cause,
    })
}

#[cfg(test)]
mod tests;

//! The learning of `trimtab-fleet`, as the engine asks for it: services are files, states and configurations are JSON.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use trimtab_fleet::{
    Aggregate, Chosen, Commons, Configuration, Control, Decision, Ended, Finding, Hold, Interval,
    Key, OPEN_MAX, Observed, Report, Service, ServiceError, Summary,
};
use trimtab_fleet_client::{KnobInfo, Name, ServiceInfo};
use trimtab_steer::customize::{Alarm, Outcome, Purpose};
use trimtab_units::{Duration, Time};

use crate::config::ConfigError;
use crate::learning::{About, Held, Learning, Wish};
use crate::store::{Closed, Decided, Lengths, Open, Shown, sound};
use crate::studies::Plans;

/// The services of a folder.
pub(crate) struct Services {
    all: BTreeMap<String, Arc<Service>>,
    infos: Vec<ServiceInfo>,
    plans: Plans,
    /// What the aggregates of each service found, as it was when the store was last asked.
    found: Mutex<BTreeMap<String, Found>>,
}

/// What the aggregates of a service found, in the unit cube of these knobs and of these other
/// algorithms. The store keeps it, so that engines which share one go by the same.
#[derive(Serialize, Deserialize)]
struct Found {
    knobs: Vec<Range>,
    others: Vec<String>,
    commons: Commons,
    /// What decisions have added since the store was asked.
    #[serde(skip)]
    added: Vec<Finding>,
}

impl Found {
    /// As the store has it. Of other knobs or algorithms, or of another version of the engine, it
    /// says nothing here.
    fn kept(service: &Service, kept: Option<&str>) -> Self {
        let (knobs, others) = (cube(service), others(service));
        kept.and_then(|text| serde_json::from_str::<Self>(text).ok())
            .filter(|kept| kept.knobs == knobs && kept.others == others)
            .unwrap_or(Self { knobs, others, commons: service.prior().clone(), added: Vec::new() })
    }

    fn add(&mut self, findings: Vec<Finding>) {
        findings.iter().for_each(|found| self.commons.add(found));
        self.added.extend(findings);
    }
}

/// A knob, its least and largest value, and whether equal steps are equal factors.
type Range = (String, f64, f64, bool);

/// What a point of the unit cube means.
fn cube(service: &Service) -> Vec<Range> {
    let range = |knob: &trimtab_fleet::KnobRange| {
        let dimension = knob.dimension;
        (knob.name.clone(), dimension.min, dimension.max, dimension.logarithmic)
    };
    service.knobs().iter().map(range).collect()
}

/// The other algorithms, in the order of their numbers.
fn others(service: &Service) -> Vec<String> {
    service.others().iter().map(|other| other.name().to_owned()).collect()
}

/// What is said of a file: the reward as it is written, and where the others are.
#[derive(Deserialize)]
struct Written {
    name: toml::Spanned<String>,
    interval: Option<toml::Spanned<String>>,
    reward: String,
}

impl Services {
    /// Reads every `*.toml` of a folder. What is decided when an interval and its `grace` are over
    /// is in force in the rest of the next one, so that has to have a rest.
    ///
    /// # Errors
    /// The folder or a file cannot be read, a file describes no service, or two the same one, or there is none, or its
    /// intervals are not longer than the grace.
    pub(crate) fn read(folder: &Path, grace: Duration) -> Result<Self, ConfigError> {
        let fail = |e: std::io::Error| ConfigError::read(folder, e);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(fail)? {
            files.push(entry.map_err(fail)?.path());
        }
        files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        files.sort();
        let mut services = Self {
            all: BTreeMap::new(),
            infos: Vec::new(),
            plans: Plans::default(),
            found: Mutex::default(),
        };
        for path in files {
            let text = std::fs::read_to_string(&path).map_err(|e| ConfigError::read(&path, e))?;
            let wrong = |at: usize, message: &str| ConfigError::at(&path, &text, at, message);
            let service = Service::parse(&text).map_err(|e| {
                let at = e.offset(&text);
                match e {
                    // It would say the line, too.
                    ServiceError::Parse(cause) => wrong(at, cause.message()),
                    e => wrong(at, &e.to_string()),
                }
            })?;
            let written = toml::from_str::<Written>(&text).map_err(|e| wrong(0, e.message()))?;
            let reward = written.reward;
            let name = service.name().as_str().to_owned();
            if service.interval() <= grace {
                let at = written.interval.map_or(0, |interval| interval.span().start);
                return Err(wrong(
                    at,
                    &format!(
                        "nothing would be learnt of {name:?}: its interval, {}, is not longer than \
                         the engine's grace, {grace}: make interval longer, or grace shorter",
                        service.interval()
                    ),
                ));
            }
            if services.all.contains_key(&name) {
                return Err(wrong(
                    written.name.span().start,
                    &format!("another file describes the service {name:?}, too: keep one"),
                ));
            }
            services.infos.push(info(&service, reward));
            services.all.insert(name, Arc::new(service));
        }
        if services.all.is_empty() {
            return Err(ConfigError::read(
                folder,
                "no file there ends in .toml; each describes a service",
            ));
        }
        services.infos.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(services)
    }

    /// How long the intervals of each are.
    pub(crate) fn lengths(&self) -> Lengths {
        self.infos.iter().map(|info| (info.name.clone(), info.interval_ms)).collect()
    }

    /// Whether there is a service of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// An aggregate as it was left, with what the others found since. `version` is that of its
    /// configuration, which grows also where nothing is known of it any more.
    fn load(&self, key: &Key, version: i64, state: Option<&str>) -> Result<Aggregate, String> {
        let mut aggregate = match state {
            None => Aggregate::new(key.clone()).after_version(version.max(0) as u64),
            Some(state) => serde_json::from_str(state).map_err(|e| {
                format!("what it has learnt is not understood by this version of the engine: {e}")
            })?,
        };
        if let Some(service) = self.all.get(key.service.as_str()) {
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            let name = service.name().as_str().to_owned();
            let found = found.entry(name).or_insert_with(|| Found::kept(service, None));
            aggregate.heed(found.commons.cells());
        }
        Ok(aggregate)
    }

    /// Adds what a decision has found for others.
    fn keep(&self, service: &str, findings: Vec<Finding>) {
        let Some(service) = self.all.get(service).filter(|_| !findings.is_empty()) else { return };
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let name = service.name().as_str().to_owned();
        found.entry(name).or_insert_with(|| Found::kept(service, None)).add(findings);
    }

    fn find(&self, name: &Name) -> Result<(&Service, Key), String> {
        let service = self.all.get(&name.service).ok_or("the engine has no such service now")?;
        Ok((service, key(name)?))
    }

    /// Closes an interval, and adds what that has found for others.
    fn decide_on(
        &self,
        open: &Open,
        now_ms: i64,
        findings: &mut Vec<Finding>,
    ) -> Result<Closed, String> {
        let (service, key) = match self.find(&open.name) {
            Ok(found) => found,
            Err(e) => return Ok(untouched(&format!("Nothing was learnt: {e}."))),
        };
        let mut aggregate = self.load(&key, open.version, open.state.as_deref())?;
        let interval = interval_at(service, open.interval);
        let version = open.version as u64;
        let mut reported = by_version(open);
        // Nothing later was in force.
        reported.retain(|reported, _| *reported <= version);
        let due = aggregate.part_in(interval);
        let studies = self.plans.of(&open.studies, service);
        let seen = reported.remove(&version).unwrap_or_default();
        // Each is compared with what was tried next to it.
        let controls = aggregate.open_intervals().filter_map(|at| aggregate.control_in(at));
        let controls: BTreeMap<u64, Seen> =
            controls.filter_map(|control| Some((control, reported.remove(&control)?))).collect();
        let (mut fitting, mut edges) = (seen.all.len(), seen.edges());
        // Versions that ended within the interval. A trial that nobody has decided on yet is learnt
        // from; another one has counted already, once and for the whole of its interval, and what
        // else it brought is only told.
        let (mut earlier, mut ended) = (Vec::new(), Vec::new());
        for (version, seen) in reported {
            let summary = seen.summary();
            match seen.close((&mut aggregate, service), interval, version, &controls) {
                Some((decision, control)) => {
                    findings.extend(decision.finding(service));
                    fitting += seen.all.len() + control.map_or(0, |control| control.all.len());
                    edges.extend(seen.edges());
                    earlier.push((decision, summary));
                }
                None => ended.push(Ended::new(service, version, &summary)),
            }
        }
        // However many versions an edge makes up.
        ended.drain(..ended.len().saturating_sub(OPEN_MAX));
        let summary = seen.summary();
        let closed = seen.close((&mut aggregate, service), interval, version, &controls);
        let decision = closed.map(|(decision, control)| {
            findings.extend(decision.finding(service));
            fitting += control.map_or(0, |control| control.all.len());
            decision
        });
        let alarm = earlier.iter().map(|(decision, _)| decision).chain(&decision);
        let alarm = alarm.filter_map(|decision| decision.alarm_of_arm(service)).next_back();
        let (decision, summary) = match decision {
            Some(decision) => (Some(decision), summary),
            // Nothing came of what followed it.
            None => {
                earlier.pop().map_or((None, summary), |(decision, seen)| (Some(decision), seen))
            }
        };
        let leaves =
            alarm.map(|part| format!("(the engine: an alarm in the arm {})", part.arm_name()));
        let key = key.to_string();
        let measured = match &decision {
            Some(decision) => {
                studies.measured(&key, interval, decision.part, Some(&summary), service)
            }
            None => studies.measured(&key, interval, due, None, service),
        };
        let next = interval_at(service, now_ms);
        aggregate.assign(studies.assignment(&key, next));
        let configuration = put_in_force(&mut aggregate, service, next, open.version);
        let counted = earlier.iter().map(|(decision, _)| decision).chain(&decision);
        let counted = counted.map(shown).collect();
        let mut detail = json!({ "fitting_reports": fitting, "edges": edges });
        if let Some(decision) = &decision {
            detail["decision"] = kept(decision);
        }
        if !earlier.is_empty() {
            detail["earlier"] = earlier.iter().map(|(decision, _)| kept(decision)).collect();
        }
        if !ended.is_empty() {
            detail["ended"] = json!(ended);
        }
        Ok(Closed {
            state: Some(state_of(&aggregate)),
            configuration,
            reward: decision.and_then(|decision| decision.reward),
            detail: detail.to_string(),
            measured,
            leaves,
            shown: counted,
        })
    }
}

fn info(service: &Service, reward: String) -> ServiceInfo {
    let knob = |(index, range): (usize, &trimtab_fleet::KnobRange)| {
        let end = |unit: f64| {
            let mut point = service.safe_knobs();
            point[index] = unit;
            service.space().values(&point)[index]
        };
        let scale = if range.dimension.logarithmic { "log" } else { "linear" };
        let safe = service.space().values(&service.safe_knobs()).get(index).copied();
        let (name, scale) = (range.name.clone(), scale.to_owned());
        KnobInfo { name, min: end(0.0), max: end(1.0), scale, safe }
    };
    ServiceInfo {
        name: service.name().as_str().to_owned(),
        interval_ms: service.interval().as_millis() as i64,
        algorithm: service.algorithm().name.to_owned(),
        incumbent: service.incumbent().map(str::to_owned),
        others: others(service),
        reward,
        side_by_side: service.side_by_side(),
        knobs: service.knobs().iter().enumerate().map(knob).collect(),
    }
}

/// The key of an aggregate, as text.
pub(crate) fn key_of(name: &Name) -> String {
    format!("{}/{}", name.service, name.prefix)
}

fn key(name: &Name) -> Result<Key, String> {
    key_of(name).parse().map_err(|e: trimtab_fleet::KeyError| e.to_string())
}

/// A decision as it is kept, without its key, which `explain` adds.
fn kept(decision: &Decision) -> Value {
    let mut kept = json!(decision);
    kept.as_object_mut().expect("a decision has fields").remove("key");
    kept
}

/// Closes an interval of which nothing is learnt.
pub(crate) fn untouched(sentence: &str) -> Closed {
    Closed {
        state: None,
        configuration: None,
        reward: None,
        detail: json!({ "sentence": sentence }).to_string(),
        measured: None,
        leaves: None,
        shown: Vec::new(),
    }
}

/// What a decision shows of the learning.
fn shown(decision: &Decision) -> Shown {
    let alarm = match &decision.lesson.outcome {
        Outcome::FellBack { alarm } => Some(match alarm {
            Alarm::Guard => "guard",
            Alarm::Reward { .. } => "reward",
            Alarm::Debt { .. } => "debt",
        }),
        _ => None,
    };
    let by = match decision.purpose {
        Purpose::Explore { .. } | Purpose::Promising { .. } | Purpose::Best | Purpose::Test(_) => {
            Some("learnt")
        }
        Purpose::Safe | Purpose::Check => Some("safe"),
        Purpose::Held => None,
    };
    Shown { alarm, broken: decision.broken.len(), reward: by.zip(decision.reward) }
}

fn interval_at(service: &Service, at_ms: i64) -> Interval {
    service.interval_at(Time::from_millis(at_ms.max(0) as u64))
}

fn state_of(aggregate: &Aggregate) -> String {
    serde_json::to_string(aggregate).expect("an aggregate is plain data")
}

/// A configuration as edges, operators and the store have it; its version is a field of its own.
fn text_of(configuration: &Configuration) -> String {
    let knobs = |knobs: &[(String, f64)]| -> serde_json::Map<String, Value> {
        knobs.iter().map(|(knob, value)| (knob.clone(), json!(value))).collect()
    };
    let Configuration { algorithm, knobs: own, control, .. } = configuration;
    let mut text = json!({ "algorithm": algorithm, "knobs": knobs(own) });
    if let Some(Control { version, algorithm, knobs: own, share, seed }) = control {
        text["control"] = json!({
            "version": version, "algorithm": algorithm, "knobs": knobs(own), "share": share,
            "seed": seed,
        });
    }
    text.to_string()
}

/// What is in force from an interval on, if it is another version than before.
fn put_in_force(
    aggregate: &mut Aggregate,
    service: &Service,
    interval: Interval,
    before: i64,
) -> Option<(i64, String)> {
    let configuration = aggregate.open(service, interval);
    let version = configuration.version as i64;
    (version != before).then(|| (version, text_of(&configuration)))
}

/// The interval that is learnt from: the one that was reported, or another of its context in which
/// the same configuration was in force and of which nobody reported.
fn measured(
    aggregate: &Aggregate,
    service: &Service,
    interval: Interval,
    version: u64,
) -> Option<Interval> {
    let in_force = |at: &Interval| aggregate.version_in(*at) == Some(version);
    let context = |at: Interval| service.context_at(aggregate.key(), at);
    Some(interval).filter(in_force).or_else(|| {
        let mut others: Vec<Interval> = aggregate.open_intervals().filter(in_force).collect();
        others.retain(|&other| context(other) == context(interval));
        others.pop()
    })
}

impl Learning for Services {
    fn services(&self) -> Vec<ServiceInfo> {
        self.infos.clone()
    }

    fn service(&self, name: &str) -> Option<Arc<Service>> {
        self.all.get(name).cloned()
    }

    fn read(&self, report: &[u8]) -> Result<About, String> {
        let report = Report::decode(report).map_err(|e| e.to_string())?;
        let implausible = report.summary.check_plausible().err();
        let name = Name {
            service: report.key.service.as_str().to_owned(),
            prefix: report.key.prefix.to_string(),
        };
        let interval =
            i64::try_from(report.interval.0).map_err(|_| format!("{name}: no such interval"))?;
        let version =
            i64::try_from(report.version).map_err(|_| format!("{name}: no such version"))?;
        Ok(About { name, interval, version, implausible })
    }

    fn first(&self, name: &Name) -> Option<String> {
        let (service, _) = self.find(name).ok()?;
        Some(text_of(&service.configuration(0, &service.safe())))
    }

    fn decide(&self, open: &[Open], now_ms: i64) -> Vec<Result<Closed, String>> {
        let decide = |open: &Open| {
            let mut findings = Vec::new();
            (sound(|| self.decide_on(open, now_ms, &mut findings)), findings)
        };
        let decided: Vec<_> = open.par_iter().map(decide).collect();
        // In their order, whichever core was first.
        let kept = open.iter().zip(decided).map(|(open, (closed, findings))| {
            if closed.is_ok() {
                self.keep(&open.name.service, findings);
            }
            closed
        });
        kept.collect()
    }

    fn heed(&self, service: &str, kept: Option<&str>) {
        let Some(service) = self.all.get(service) else { return };
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.insert(service.name().as_str().to_owned(), Found::kept(service, kept));
    }

    fn has_found(&self, service: &str) -> bool {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.get(service).is_some_and(|found| !found.added.is_empty())
    }

    fn found(&self, service: &str, kept: Option<&str>) -> Option<String> {
        let service = self.all.get(service)?;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let here = found.get_mut(service.name().as_str())?;
        let added = core::mem::take(&mut here.added);
        *here = Found::kept(service, kept);
        here.add(added);
        serde_json::to_string(here).ok()
    }

    fn explain(&self, name: &Name, decided: &Decided) -> Value {
        let mut why: Value = serde_json::from_str(&decided.detail).unwrap_or_default();
        if let Ok(key) = key(name) {
            let earlier = why["earlier"].as_array().map_or(0, Vec::len);
            for i in 0..earlier {
                why["earlier"][i]["key"] = json!(key);
            }
            if why["decision"].is_object() {
                why["decision"]["key"] = json!(key);
            }
        }
        if why.is_object() && why.get("sentence").is_none() {
            why["sentence"] = json!(sentence(&why, decided));
        }
        why
    }

    fn wish(
        &self,
        name: &Name,
        (version, state): (i64, Option<&str>),
        wish: &Wish,
        now_ms: i64,
    ) -> Result<Held, String> {
        let (service, key) = self.find(name)?;
        let mut aggregate = self.load(&key, version, state)?;
        let before = aggregate.latest();
        // An order counts more than an experiment, which goes on without it.
        aggregate.assign(None);
        match wish {
            Wish::Pause => aggregate.set_hold(Hold::Paused),
            Wish::Pin(knobs) => {
                let values = chosen(service, knobs)?;
                aggregate.set_hold(Hold::Pinned { values });
            }
            Wish::Back(text) => {
                let then: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
                let values = chosen_before(service, &then)?;
                aggregate.set_hold(Hold::Pinned { values });
            }
            Wish::Resume => {
                if let Hold::Pinned { values } = aggregate.hold().clone() {
                    aggregate.restart_at(service, None, &values);
                }
                aggregate.set_hold(Hold::Learning);
            }
        }
        // What is in force changes with an interval; so that it does now, the next one begins early.
        let now = interval_at(service, now_ms);
        let next = before.map_or(now, |before| before.max(now)).next();
        let configuration = put_in_force(&mut aggregate, service, next, -1);
        Ok(Held { state: state_of(&aggregate), configuration })
    }
}

/// The reports of an interval by the version that they were measured under.
fn by_version(open: &Open) -> BTreeMap<u64, Seen> {
    let mut reported: BTreeMap<u64, Seen> = BTreeMap::new();
    for (bytes, edge) in open.reports.iter().zip(&open.edges) {
        let Ok(report) = Report::decode(bytes) else { continue };
        let Report { version, summary, next, .. } = report;
        reported.entry(version).or_default().all.push(OfEdge { edge: *edge, summary, next });
    }
    reported
}

/// What edges reported of an interval under one version.
#[derive(Default)]
struct Seen {
    all: Vec<OfEdge>,
}

/// What one of them did.
struct OfEdge {
    edge: Option<i64>,
    summary: Summary,
    next: Option<[Summary; 2]>,
}

impl Seen {
    /// The tokens of the edges.
    fn edges(&self) -> Vec<i64> {
        self.all.iter().map(|one| one.edge.unwrap_or(0)).collect()
    }

    fn summary(&self) -> Summary {
        let all: Vec<Summary> = self.all.iter().map(|one| one.summary.clone()).collect();
        Summary::of_edges(&all)
    }

    /// By arm, what those edges saw that reported the control, too: an edge of an older version runs
    /// what is tried everywhere.
    fn by_arm(&self, control: &Self) -> Option<[Summary; 2]> {
        let both = self.all.iter().filter_map(|one| {
            let edge = one.edge?;
            let other = control.all.iter().find(|other| other.edge == Some(edge))?;
            Some([one.summary.clone(), other.summary.clone()])
        });
        of_arms(both)
    }

    /// By the arm of the next interval, what edges saw under this version and under its control.
    fn next(&self, control: Option<&Self>) -> Option<[Summary; 2]> {
        let both = self.all.iter().chain(control.into_iter().flat_map(|control| &control.all));
        of_arms(both.filter_map(|one| one.next.clone()))
    }

    /// Closes the trial of a version, where there is one that is open; and gives what came of its
    /// control, where that was reported.
    fn close<'a>(
        &self,
        (aggregate, service): (&mut Aggregate, &Service),
        interval: Interval,
        version: u64,
        controls: &'a BTreeMap<u64, Self>,
    ) -> Option<(Decision, Option<&'a Self>)> {
        if self.all.is_empty() {
            return None;
        }
        let from = measured(aggregate, service, interval, version)?;
        let control = aggregate.control_in(from).and_then(|version| controls.get(&version));
        let summary = self.summary();
        let arms = control.and_then(|control| self.by_arm(control));
        // Of another interval it is no covariate of the one after this.
        let next = if from == interval { self.next(control) } else { None };
        let observed = Observed { summary: &summary, arms: arms.as_ref(), next: next.as_ref() };
        let decision = aggregate.close(service, from, observed).ok()?;
        Some((decision, control))
    }
}

/// What edges saw by arm; none where none saw anything by arm.
fn of_arms(edges: impl Iterator<Item = [Summary; 2]>) -> Option<[Summary; 2]> {
    let (treatment, control): (Vec<Summary>, Vec<Summary>) =
        edges.map(<(Summary, Summary)>::from).unzip();
    let all = [Summary::of_edges(&treatment), Summary::of_edges(&control)];
    (!treatment.is_empty()).then_some(all)
}

/// A decision for people.
fn sentence(why: &Value, decided: &Decided) -> String {
    let read = |decision: &Value| serde_json::from_value::<Decision>(decision.clone());
    let mut text = match read(&why["decision"]) {
        Ok(decision) => decision.to_string(),
        Err(_) => format!(
            "Nothing was learnt: {} of {} reports were measured under version {}, which was to be tried{}.",
            why["fitting_reports"].as_u64().unwrap_or(0),
            decided.reports,
            decided.version,
            if decided.version == 0 { " by nobody: it is the service's first" } else { "" }
        ),
    };
    for decision in why["earlier"].as_array().into_iter().flatten().flat_map(read) {
        text.push_str(&format!(
            " Version {} was in force earlier in the interval. {decision}",
            decision.version
        ));
    }
    let ended = why["ended"].as_array().into_iter().flatten();
    for ended in ended.flat_map(|ended| serde_json::from_value::<Ended>(ended.clone())) {
        text.push_str(&format!(" {ended}"));
    }
    text
}

/// What an operator names: values of knobs that may be learnt, of which those left out are safe;
/// another algorithm; with nothing the safe configuration.
fn chosen(service: &Service, knobs: &Value) -> Result<Chosen, String> {
    let knobs = knobs.as_object().ok_or("`knobs` is an object, as {\"gamma\": 100}")?;
    if let Some(name) = knobs.get("algorithm") {
        return other(service, name, knobs.len() > 1);
    }
    if knobs.is_empty() {
        return Ok(service.chosen(&service.safe()));
    }
    let known =
        || service.knobs().iter().map(|knob| knob.name.as_str()).collect::<Vec<_>>().join(", ");
    for (name, value) in knobs {
        let index =
            service.knobs().iter().position(|knob| &knob.name == name).ok_or_else(|| {
                format!("no knob {name:?} may be set here: there are {}", known())
            })?;
        let value = value.as_f64().ok_or_else(|| format!("{name} needs a number"))?;
        let mut point = service.safe_knobs();
        point[index] = service.space().dimensions()[index].unit(value);
        let kept = service.space().values(&point)[index];
        if (kept - value).abs() > 1e-9 * value.abs().max(1e-9) {
            return Err(format!(
                "{name} = {value} is outside what the service permits; {kept} is nearest"
            ));
        }
    }
    Ok(Chosen::Knobs(learnt(service, &Value::Object(knobs.clone()))))
}

/// Another algorithm of the service, by its name.
fn other(service: &Service, name: &Value, has_knobs: bool) -> Result<Chosen, String> {
    let known = others(service).join(", ");
    let name = name.as_str().unwrap_or_default();
    let Some(point) = service.other_named(name) else {
        return Err(format!("no algorithm {name:?} may be set here: there are {known}"));
    };
    if has_knobs {
        return Err(format!("{name} runs as the service describes it: leave the knobs out"));
    }
    Ok(service.chosen(&point))
}

/// What a configuration was that was in force before; an error where the service lacks it by now.
fn chosen_before(service: &Service, then: &Value) -> Result<Chosen, String> {
    let knobs = then["knobs"].as_object().into_iter().flatten();
    let configuration = Configuration {
        version: 0,
        algorithm: then["algorithm"].as_str().unwrap_or_default().to_owned(),
        knobs: knobs.filter_map(|(knob, value)| Some((knob.clone(), value.as_f64()?))).collect(),
        control: None,
    };
    match service.other_in(&configuration) {
        Some(other) => Ok(Chosen::Other { algorithm: other.name().to_owned() }),
        None if configuration.algorithm == service.algorithm().name => {
            Ok(Chosen::Knobs(learnt(service, &then["knobs"])))
        }
        None => Err(format!(
            "the service has no {configuration} any more: put it into `others`, or pin what it has"
        )),
    }
}

fn learnt(service: &Service, knobs: &Value) -> Vec<f64> {
    let safe = service.space().values(&service.safe_knobs());
    let value =
        |(knob, safe): (&trimtab_fleet::KnobRange, f64)| knobs[&knob.name].as_f64().unwrap_or(safe);
    service.knobs().iter().zip(safe).map(value).collect()
}

#[cfg(test)]
mod tests;

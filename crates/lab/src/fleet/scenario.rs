//! What a simulated fleet is made of, as a TOML file.

use std::path::Path;

use serde::Deserialize;
use trimtab_apps::Recipe;
use trimtab_cc::Spec;
use trimtab_fleet::{AGGREGATES_MIN, INTERVALS_MIN, PriorRow, Service};
use trimtab_units::{Duration, Rate};

use super::error::{FleetScenarioError, read, value};
use super::shared::{RawShared, Shared};
use crate::scenario::AppSettings;

/// A simulated fleet. `docs/concepts/customize.md` describes every key of its file.
#[derive(Clone, Debug)]
pub struct FleetScenario {
    /// Its name.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// Aggregates, each with links of its own unless [`FleetLinks::shared`] has several on one.
    pub aggregates: u32,
    /// How long the fleet runs, in virtual time.
    pub duration: Duration,
    /// Connections that are simulated in each interval of each aggregate.
    pub connections: u32,
    /// Fixed configurations that are tried in hindsight for each aggregate.
    pub fixed: u32,
    /// What connections do.
    pub app: FleetApp,
    /// What they run over.
    pub links: FleetLinks,
    /// An outage in the middle of learning.
    pub outage: Option<Outage>,
    /// The services; the first is described in full, others replace its keys.
    pub services: Vec<Service>,
    /// Algorithms to compare with, at their defaults or as they are set; `None` is the sender that
    /// sees the link, a bound.
    pub baselines: Vec<(String, Option<Spec>)>,
    /// Baselines and the start take part in one of so many intervals; the incumbent and the
    /// baseline of `compare_with` in all.
    pub baselines_every: u64,
    /// The baseline that what is learnt is compared with, statistic by statistic.
    pub compare_with: Option<String>,
    /// After this time of the run, aggregates that the log shows to share a bottleneck are one.
    pub(super) together_after: Option<Duration>,
    /// What the paper reports, to stand next to our figures.
    pub paper: Vec<String>,
    /// What was parsed, without comments.
    pub(super) source: toml::Table,
}

/// What a connection does.
#[derive(Clone, Debug)]
pub struct FleetApp {
    /// The application with its settings, as in other scenarios.
    pub settings: AppSettings,
    /// How to make its clients.
    pub(super) recipe: Recipe,
}

impl PartialEq for FleetApp {
    fn eq(&self, other: &Self) -> bool {
        self.settings == other.settings
    }
}

/// The links of the fleet: each range is drawn from once per aggregate, log-uniform.
#[derive(Clone, Debug)]
pub struct FleetLinks {
    /// Mean capacity.
    pub rate: (Rate, Rate),
    /// Base round-trip time.
    pub rtt: (Duration, Duration),
    /// Droptail buffer in bandwidth-delay products.
    pub buffer: (f64, f64),
    /// Random loss.
    pub loss: (f64, f64),
    /// Whether capacity follows generated cellular traces.
    pub cellular: bool,
    /// Standard deviation of the logarithm of the capacity from connection to connection.
    pub spread: f64,
    /// What of the capacity is left in the first, second and third band of a weekday; weekends keep half of the way up.
    pub load: [f64; 3],
    /// How far capacity drifts, as an amplitude of its logarithm, over weeks.
    pub drift: f64,
    /// Abrupt changes of an aggregate's links during the run: everything is drawn anew.
    pub changes: u32,
    /// A policer: share of the capacity that passes, and how long the bucket lasts at full capacity.
    pub policer: Option<(f64, Duration)>,
    /// What connections share their links with.
    pub shared: Shared,
}

/// An outage: everything becomes far worse for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outage {
    /// The first interval.
    pub from: u64,
    /// The first interval after it.
    pub until: u64,
    /// What of the capacity is left.
    pub capacity: f64,
    /// Random loss on top.
    pub loss: f64,
}

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default)]
    name: String,
    #[serde(default)]
    about: String,
    aggregates: u32,
    duration: String,
    connections: u32,
    #[serde(default = "forty_eight")]
    fixed: u32,
    app: AppSettings,
    links: RawLinks,
    outage: Option<RawOutage>,
    service: Vec<toml::Table>,
    #[serde(default)]
    baselines: Vec<String>,
    #[serde(default = "one")]
    baselines_every: u32,
    #[serde(alias = "beside")]
    compare_with: Option<String>,
    #[serde(default)]
    paper: Vec<String>,
}

/// The baseline that no algorithm is.
const CEILING: &str = "omniscient";

const fn one() -> u32 {
    1
}

const fn forty_eight() -> u32 {
    48
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLinks {
    rate: [String; 2],
    rtt: [String; 2],
    buffer: [f64; 2],
    #[serde(default)]
    loss: [f64; 2],
    #[serde(default)]
    cellular: bool,
    #[serde(default)]
    spread: f64,
    #[serde(default = "unloaded")]
    load: [f64; 3],
    #[serde(default)]
    drift: f64,
    #[serde(default)]
    changes: u32,
    policer: Option<RawPolicer>,
    shared: Option<RawShared>,
}

const fn unloaded() -> [f64; 3] {
    [1.0; 3]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPolicer {
    share: f64,
    bucket: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOutage {
    from: u64,
    until: u64,
    capacity: f64,
    loss: f64,
}

impl FleetScenario {
    /// Parses a scenario.
    ///
    /// # Errors
    /// Says what is wrong with it, and what would be right.
    pub fn parse(text: &str) -> Result<Self, FleetScenarioError> {
        let raw: Raw = toml::from_str(text)?;
        let mut scenario = raw.checked()?;
        scenario.source = toml::from_str(text)?;
        Ok(scenario)
    }

    /// Reads a scenario file. One with `extends` has the keys of that file, from its own folder,
    /// with its own keys in their place.
    ///
    /// # Errors
    /// As [`FleetScenario::parse`], and when a file cannot be read.
    pub fn load(path: &Path) -> Result<Self, FleetScenarioError> {
        let mut scenario = Self::parse(&whole(path)?)?;
        if scenario.name.is_empty() {
            scenario.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        Ok(scenario)
    }

    /// Lets aggregates become one after a time of the run, where the log shows that they share a
    /// bottleneck.
    ///
    /// # Errors
    /// There are too few aggregates or intervals to tell, or the run ends before.
    pub fn joining(mut self, after: Duration) -> Result<Self, FleetScenarioError> {
        let intervals = after.ratio(self.services[0].interval());
        let is_within = intervals >= INTERVALS_MIN as f64 && after < self.duration;
        if self.aggregates < AGGREGATES_MIN as u32 || !is_within {
            let must = format!(
                "after {INTERVALS_MIN} intervals at the earliest and before the end of the run, with \
                 {AGGREGATES_MIN} aggregates at least"
            );
            return Err(value("together_after", must));
        }
        self.together_after = Some(after);
        Ok(self)
    }

    /// The same fleet, which begins with these findings of another one.
    ///
    /// # Errors
    /// There are several services, or the text is no prior of the one that there is.
    pub fn beginning_with(mut self, prior: &str) -> Result<Self, FleetScenarioError> {
        let [service] = &mut self.services[..] else {
            let must = "of one service, and the scenario has several: they differ in what is good";
            return Err(value("prior", must.to_owned()));
        };
        let found = PriorRow::parse(prior).and_then(|rows| service.clone().with_prior(&rows));
        *service = found.map_err(|cause| FleetScenarioError::Service {
            key: "prior".to_owned(),
            cause: Box::new(cause),
        })?;
        Ok(self)
    }

    /// Intervals of the run.
    pub fn intervals(&self) -> u64 {
        (self.duration.ratio(self.services[0].interval()) as u64).max(1)
    }
}

/// The text of a scenario with what it extends, which extends nothing more.
fn whole(path: &Path) -> Result<String, FleetScenarioError> {
    let text = read(path)?;
    let mut own: toml::Table = toml::from_str(&text)?;
    let Some(base) = own.remove("extends") else { return Ok(text) };
    let must = "the path of another scenario, as it is from this one's folder";
    let base = base.as_str().ok_or_else(|| value("extends", must))?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let mut all: toml::Table = toml::from_str(&read(&folder.join(base))?)?;
    put_into(&mut all, own);
    Ok(all.to_string())
}

/// Puts keys into a table, those of nested tables each for itself.
fn put_into(all: &mut toml::Table, own: toml::Table) {
    for (key, value) in own {
        match (all.get_mut(&key), value) {
            (Some(toml::Value::Table(before)), toml::Value::Table(now)) => put_into(before, now),
            (_, value) => {
                all.insert(key, value);
            }
        }
    }
}

impl Raw {
    fn checked(self) -> Result<FleetScenario, FleetScenarioError> {
        for (key, count, most) in [
            ("aggregates", self.aggregates, 10_000),
            ("connections", self.connections, 1000),
            ("fixed", self.fixed, 10_000),
            ("baselines_every", self.baselines_every, 1000),
        ] {
            if !(1..=most).contains(&count) {
                return Err(value(key, format!("a whole number from 1 to {most}")));
            }
        }
        if self.fixed > 1 && self.baselines_every > 1 {
            return Err(value(
                "baselines_every",
                "1 with a search in hindsight, whose best is compared in all intervals; or \
                 `fixed = 1`, which has no search",
            ));
        }
        let services = services(&self.service)?;
        let duration =
            self.duration.parse::<Duration>().map_err(|e| value("duration", e.to_string()))?;
        if let Some(name) = self.compare_with.as_ref().filter(|name| !self.baselines.contains(name))
        {
            return Err(value(
                "compare_with",
                format!("one of the baselines, which {name} is not"),
            ));
        }
        let links = self.links.checked()?;
        if !links.shared.cross.is_empty() && self.baselines.iter().any(|name| name == CEILING) {
            return Err(value(
                "baselines",
                format!(
                    "{CEILING} sees no cross traffic, so it bounds nothing there: leave it out"
                ),
            ));
        }
        let baselines = self.baselines.into_iter().map(|text| {
            if text == CEILING {
                return Ok((text, None));
            }
            let spec =
                text.parse::<Spec>().map_err(|e| value("baselines", format!("{text}: {e}")))?;
            Ok((text, Some(spec)))
        });
        let AppSettings { kind, name: _, settings, qoe, factors } = &self.app;
        if qoe.is_some() || !factors.is_empty() {
            return Err(value("app", "no `qoe` and no `factors`: the service's formula scores"));
        }
        let recipe = kind.recipe(settings).map_err(|e| value("app", e.to_string()))?;
        let app = FleetApp { settings: self.app, recipe };
        let intervals = (duration.ratio(services[0].interval()) as u64).max(1);
        if self.outage.as_ref().is_some_and(|o| o.from >= o.until || o.until > intervals) {
            return Err(value(
                "outage",
                format!("`from` comes before `until`, within the {intervals} intervals of the run"),
            ));
        }
        let outage = self.outage.map(|o| Outage {
            from: o.from,
            until: o.until,
            capacity: o.capacity.clamp(0.001, 1.0),
            loss: o.loss.clamp(0.0, 1.0),
        });
        Ok(FleetScenario {
            name: self.name,
            about: self.about,
            aggregates: self.aggregates,
            duration,
            connections: self.connections,
            fixed: self.fixed,
            app,
            links,
            outage,
            services,
            baselines: baselines.collect::<Result<_, FleetScenarioError>>()?,
            baselines_every: u64::from(self.baselines_every),
            compare_with: self.compare_with,
            together_after: None,
            paper: self.paper,
            source: toml::Table::new(),
        })
    }
}

/// The services: keys that a later one leaves out are those of the first.
fn services(tables: &[toml::Table]) -> Result<Vec<Service>, FleetScenarioError> {
    let Some(first) = tables.first() else {
        return Err(value("service", "at least one [[service]]"));
    };
    let of = |(n, table): (usize, &toml::Table)| {
        let mut whole = first.clone();
        whole.extend(table.clone());
        let key = format!("service {}", n + 1);
        Service::parse(&whole.to_string())
            .map_err(|cause| FleetScenarioError::Service { key, cause: Box::new(cause) })
    };
    let services: Vec<Service> = tables.iter().enumerate().map(of).collect::<Result<_, _>>()?;
    let same = services
        .windows(2)
        .all(|pair| pair[0].interval() == pair[1].interval() && pair[0].knobs() == pair[1].knobs());
    if same { Ok(services) } else { Err(value("service", "all have the same interval and knobs")) }
}

impl RawLinks {
    fn checked(self) -> Result<FleetLinks, FleetScenarioError> {
        let rate = |t: &String| t.parse::<Rate>().map_err(|e| value("links.rate", e.to_string()));
        let time =
            |t: &String| t.parse::<Duration>().map_err(|e| value("links.rtt", e.to_string()));
        let links = FleetLinks {
            rate: (rate(&self.rate[0])?, rate(&self.rate[1])?),
            rtt: (time(&self.rtt[0])?, time(&self.rtt[1])?),
            buffer: self.buffer.into(),
            loss: self.loss.into(),
            cellular: self.cellular,
            spread: self.spread,
            load: self.load,
            drift: self.drift,
            changes: self.changes,
            policer: self
                .policer
                .map(|p| {
                    Ok::<_, FleetScenarioError>((
                        p.share,
                        p.bucket
                            .parse::<Duration>()
                            .map_err(|e| value("links.policer", e.to_string()))?,
                    ))
                })
                .transpose()?,
            shared: self.shared.map(RawShared::checked).transpose()?.unwrap_or_default(),
        };
        let ascends = |(least, most): (f64, f64), floor: f64| least >= floor && least <= most;
        let good = [
            ("links.rate", ascends((links.rate.0.mbps(), links.rate.1.mbps()), 0.01)),
            ("links.rtt", ascends((links.rtt.0.as_secs_f64(), links.rtt.1.as_secs_f64()), 0.0001)),
            ("links.buffer", ascends(links.buffer, 0.01)),
            ("links.loss", ascends(links.loss, 0.0) && links.loss.1 < 1.0),
            ("links.load", links.load.iter().all(|l| (0.01..=1.0).contains(l))),
            ("links.spread", (0.0..=2.0).contains(&links.spread)),
            ("links.drift", (0.0..=2.0).contains(&links.drift)),
            ("links.policer", links.policer.is_none_or(|(s, _)| (0.001..=1.0).contains(&s))),
        ];
        match good.iter().find(|(_, good)| !good) {
            Some((key, _)) => {
                Err(value(*key, "a range from the least to the most that links can have"))
            }
            None => Ok(links),
        }
    }
}

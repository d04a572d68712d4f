//! The interface between an application and the carrier of its requests, and the table of all
//! applications. A new one is a file of its own and a line of [`App`].

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use enum_dispatch::enum_dispatch;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;
use trimtab_units::{Bytes, Duration, Time};

use crate::{
    AppError, AppFactors, Bulk, BulkConfig, Call, CloudGame, Conference, Download, DownloadConfig,
    Live, Outcome, RequestRecord, Setting, Settings, Vod, VodConfig, VodConfigError, Web,
    WebConfig,
};

/// Names one request of one application: 0, 1, 2, … in the order in which they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// What the client wants from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Send a request message to the server, which answers at once with a response.
    Request {
        /// The request; responses are reported under this name.
        id: RequestId,
        /// Body of the response, at least one byte.
        size: Bytes,
        /// Size of the request message itself, at least one byte.
        upload: Bytes,
    },
}

/// How the responses of one application share its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Concurrency {
    /// One byte stream: responses come one after another in the order of the requests, and a lost
    /// packet holds back all that follows (TCP with HTTP/1.1).
    InOrder,
    /// A stream per request: responses share the connection and do not wait for each other (HTTP/3).
    Streams,
}

/// An application: the client's side of a workload.
///
/// Time 0 of a workload is the first call of [`poll`](Self::poll). The carrier calls `poll` until it
/// gives `None`: at the start, after every `on_*` call, and when [`next_timer`](Self::next_timer)
/// has come. Times never go backwards from one call to the next. A report on a request that was
/// never made or is already complete changes nothing.
#[enum_dispatch]
pub trait Application {
    /// The next thing that the client wants at `now`; `None` when there is nothing more for now.
    fn poll(&mut self, now: Time) -> Option<Command>;

    /// When to call [`poll`](Self::poll) again even if nothing happens; `None` for "only after an
    /// event".
    fn next_timer(&self) -> Option<Time>;

    /// The first byte of a response's body reached the client.
    fn on_first_byte(&mut self, _now: Time, _id: RequestId) {}

    /// `newly` more bytes of a response's body reached the client, in order.
    fn on_bytes(&mut self, _now: Time, _id: RequestId, _newly: Bytes) {}

    /// The last byte of a response reached the client.
    fn on_complete(&mut self, now: Time, id: RequestId);

    /// Whether the application wants nothing more and has got all it wanted.
    fn is_finished(&self) -> bool;

    /// What a QoE model needs to know of the application right now.
    fn factors(&self, now: Time) -> AppFactors;

    /// How responses share the connection.
    fn concurrency(&self) -> Concurrency;

    /// The requests that were sent, in that order; none of an application that makes no separate
    /// ones.
    fn requests(&self) -> &[RequestRecord] {
        &[]
    }

    /// Draws anew, by `seed`, what the client will want after `now`. What it wanted so far stays. A
    /// client that draws nothing has one future, and stays as it is.
    fn redraw(&mut self, _now: Time, _seed: u64) {}

    /// What the run achieved up to `now`.
    fn outcome(&self, now: Time) -> Outcome;

    /// The call, of an application that makes media as it goes and makes no requests. Its first
    /// [`poll`](Self::poll) begins it.
    fn call(&self) -> Option<&Call> {
        None
    }

    /// The call, for the transport that carries it.
    fn call_mut(&mut self) -> Option<&mut Call> {
        None
    }
}

macro_rules! applications {
    ($($(#[$about:meta])* $app:ident,)*) => {
        /// Any of the applications, dispatched without allocation or virtual calls.
        #[enum_dispatch(Application)]
        #[derive(Clone, Debug)]
        pub enum App {
            $($(#[$about])* $app,)*
        }

        /// Every application, in the order of help texts.
        pub static APPLICATIONS: &[AppInfo] = &[$($app::INFO,)*];
    };
}

applications! {
    /// Requests by schedule.
    Download,
    /// Video on demand.
    Vod,
    /// Web traffic.
    Web,
    /// One endless response.
    Bulk,
    /// Live video.
    Live,
    /// A video conference.
    Conference,
    /// A game that a server renders.
    CloudGame,
}

impl App {
    /// Bulk data; see [`BulkConfig`].
    pub fn bulk(config: &BulkConfig) -> Self {
        Bulk::new(config).into()
    }
    /// Requests by schedule; see [`DownloadConfig`].
    pub fn download(config: DownloadConfig) -> Self {
        Download::new(config).into()
    }
    /// Video on demand; see [`VodConfig`].
    ///
    /// # Errors
    /// A setting is outside its range.
    pub fn vod(config: VodConfig) -> Result<Self, VodConfigError> {
        Ok(Vod::new(config)?.into())
    }
    /// Web traffic; see [`WebConfig`].
    pub fn web(config: &WebConfig) -> Self {
        Web::new(config).into()
    }
}

/// An application of the table: what hosts, reports and help texts need to know of it.
#[derive(Clone, Copy, Debug)]
pub struct AppInfo {
    /// Its name in commands and scenario files.
    pub name: &'static str,
    /// What it is, in half a sentence.
    pub about: &'static str,
    /// The paper that it follows.
    pub source: &'static str,
    /// What reports call it.
    pub label: &'static str,
    /// Who feels it, for headlines.
    pub users: &'static str,
    /// What its users do and how their experience counts, for reports.
    pub experience: &'static str,
    /// Whether experience spans orders of magnitude, so that its axis is logarithmic.
    pub log: bool,
    /// Whether it makes media as it goes, which takes a transport of media ([`Application::call`]).
    pub media: bool,
    /// Its settings.
    pub settings: &'static [Setting],
    /// The built-in QoE models that suit it, the default first.
    pub models: &'static [&'static str],
    /// The factors of QoE formulas that are known when it is scored.
    pub factors: &'static [&'static str],
    /// Makes its recipe from settings that it takes; see [`AppKind::recipe`].
    pub(crate) make: fn(&Settings) -> Result<Recipe, AppError>,
}

/// An application of [`APPLICATIONS`]. In text it is its name.
#[derive(Clone, Copy)]
pub struct AppKind(&'static AppInfo);

impl AppKind {
    /// Every application, in the order of help texts.
    pub fn all() -> impl Iterator<Item = Self> {
        APPLICATIONS.iter().map(Self)
    }

    /// The application of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.0.name == name)
    }

    /// Bulk data, which competitors carry unless a scenario says otherwise.
    pub fn bulk() -> Self {
        Self(&Bulk::INFO)
    }

    /// Its entry in the table.
    pub const fn info(self) -> &'static AppInfo {
        self.0
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Whether it has that setting.
    pub fn takes(self, setting: &str) -> bool {
        self.0.settings.iter().any(|s| s.name == setting)
    }

    /// How to make its clients with these settings.
    ///
    /// # Errors
    /// It does not take them, or a file that they name is wrong.
    pub fn recipe(self, settings: &Settings) -> Result<Recipe, AppError> {
        settings.check(self.0)?;
        (self.0.make)(settings)
    }
}

/// There is no application of this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name:?}: unknown application: use {}", AppKind::all().map(AppKind::name).collect::<Vec<_>>().join(", "))]
pub struct UnknownApp {
    /// The name.
    pub name: String,
}

impl FromStr for AppKind {
    type Err = UnknownApp;
    fn from_str(name: &str) -> Result<Self, UnknownApp> {
        Self::named(name).ok_or_else(|| UnknownApp { name: name.to_owned() })
    }
}

impl PartialEq for AppKind {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}
impl Eq for AppKind {}

impl fmt::Debug for AppKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}
impl fmt::Display for AppKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.name)
    }
}

impl Serialize for AppKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name)
    }
}
impl<'de> Deserialize<'de> for AppKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A session of one client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Session {
    /// How long the client goes on; an application without an end of its own takes no notice.
    pub length: Duration,
    /// Seed of all that is drawn.
    pub seed: u64,
    /// Where in its distribution the size of a single request lies, 0 to 1, for a host that spreads
    /// the sizes of many sessions evenly. `None`: drawn.
    pub quantile: Option<f64>,
}

/// How to make the clients of an application with certain settings. Cheap to clone.
#[derive(Clone)]
pub struct Recipe(Arc<dyn Fn(&Session) -> App + Send + Sync>);

impl Recipe {
    pub(crate) fn new(make: impl Fn(&Session) -> App + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// A client that has done nothing yet.
    pub fn client(&self, session: &Session) -> App {
        (self.0)(session)
    }
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recipe")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_application_is_found_by_its_name_and_makes_clients() {
        for kind in AppKind::all() {
            assert_eq!(kind.name().parse(), Ok(kind));
            let recipe = kind.recipe(&Settings::default()).unwrap();
            let session = Session { length: Duration::from_secs(10), seed: 1, quantile: None };
            let mut app = recipe.client(&session);
            if kind.info().media {
                assert_eq!(app.poll(Time::ZERO), None, "{kind} makes no requests");
                assert_eq!(app.call().map(Call::next_capture), Some(Time::ZERO), "{kind} begins");
                continue;
            }
            let first = std::iter::from_fn(|| {
                let at = app.next_timer()?;
                Some(app.poll(at))
            });
            assert!(first.take(5).any(|command| command.is_some()), "{kind} asks for something");
            assert!(!app.is_finished());
        }
        let e = "downlod".parse::<AppKind>().unwrap_err().to_string();
        assert!(e.starts_with("\"downlod\": unknown application: use download, vod, web"), "{e}");
    }

    #[test]
    fn names_of_applications_and_settings_are_their_own() {
        for kind in AppKind::all() {
            assert_eq!(AppKind::all().filter(|other| *other == kind).count(), 1);
            for setting in kind.info().settings {
                let same = |other: &&Setting| other.name == setting.name;
                assert_eq!(kind.info().settings.iter().filter(same).count(), 1);
                assert!(!setting.about.is_empty() && !setting.form.wanted().is_empty());
            }
        }
    }
}

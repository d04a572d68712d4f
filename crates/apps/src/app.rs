//! The interface between an application and whoever carries its requests, and the table of all
//! applications. A new one is a file of its own, a variant of [`App`] and an entry of
//! [`APPLICATIONS`].

use enum_dispatch::enum_dispatch;
use trimtab_units::{Bytes, Time};

use crate::{
    AppFactors, Bulk, BulkConfig, Download, DownloadConfig, Outcome, RequestRecord, Vod, VodConfig,
    VodConfigError, Web, WebConfig,
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

    /// What the run achieved up to `now`.
    fn outcome(&self, now: Time) -> Outcome;
}

/// Any of the applications, dispatched without allocation or virtual calls.
#[enum_dispatch(Application)]
#[derive(Clone, Debug)]
pub enum App {
    /// One endless response.
    Bulk,
    /// Requests by schedule.
    Download,
    /// Video on demand.
    Vod,
    /// Web traffic.
    Web,
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

    /// The requests that were sent, in that order; none of an application that makes no separate ones.
    pub fn requests(&self) -> &[RequestRecord] {
        match self {
            Self::Download(download) => download.requests(),
            Self::Web(web) => web.requests(),
            Self::Bulk(_) | Self::Vod(_) => &[],
        }
    }
}

/// A setting of an application, for help texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The field of the application's config.
    pub name: &'static str,
    /// Its default, with the unit.
    pub default: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
}

/// An application of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppInfo {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// The paper that it follows.
    pub source: &'static str,
    /// Its settings.
    pub settings: &'static [Setting],
}

/// Every application, for help texts and for the tests that run "for every application".
pub static APPLICATIONS: &[AppInfo] = &[
    AppInfo {
        name: "download",
        about: "file downloads: requests by schedule, whether or not earlier ones are done",
        source: "Mortise, section 4 (1) and Appendix B",
        settings: Download::SETTINGS,
    },
    AppInfo {
        name: "vod",
        about: "video on demand: chunks at the bitrate that an ABR rule chooses, a playback buffer",
        source: "Mortise, section 4 (2); Müller and Timmerer 2011; BOLA, INFOCOM 2016",
        settings: Vod::SETTINGS,
    },
    AppInfo {
        name: "web",
        about: "web traffic: small requests and responses on concurrent streams, in bursts",
        source: "Floo, section 4.2 and Fig. 5; Mortise, Appendix D",
        settings: Web::SETTINGS,
    },
    AppInfo {
        name: "bulk",
        about: "one response without end",
        source: "Mortise, section 5.5",
        settings: Bulk::SETTINGS,
    },
];

//! Application workloads as state machines.
//!
//! An application says what its client wants ([`Command`]) and gets what the network delivered
//! ([`Application::on_bytes`] and its siblings). It does no I/O and has no clock: the carrier of its
//! requests, a simulator or a real connection, calls [`Application::poll`] and gives the time. Every
//! application is `Clone`, and equal seeds give equal requests on every machine.
//!
//! ```
//! use trimtab_apps::{App, Application, Command, DownloadConfig, Outcome, Workload};
//! use trimtab_units::{Bytes, Time};
//!
//! let workload = Workload::parse("0 5000\n250 90000\n").unwrap();
//! let mut app = App::download(DownloadConfig::new(workload));
//!
//! let Some(Command::Request { id, size, .. }) = app.poll(Time::ZERO) else { panic!() };
//! assert_eq!(size, Bytes::new(5000));
//! assert_eq!(app.poll(Time::ZERO), None, "the second request is due later");
//! assert_eq!(app.next_timer(), Some(Time::from_millis(250)));
//!
//! app.on_complete(Time::from_millis(40), id);
//! let Outcome::Requests(records) = app.outcome(Time::from_millis(100)) else { panic!() };
//! assert_eq!(records[0].completion_time().unwrap().as_millis(), 40);
//! ```
//!
//! What to read first: `outcome.rs` for what a run achieves, then the file of the application:
//! `download.rs` (Mortise §4 and Appendix B), `vod/mod.rs` with the rules in `abr/`,
//! `web.rs` (Floo §4.2), `bulk.rs`, or `conference.rs` with the pieces in `call/` (Mortise App. C).
#![forbid(unsafe_code)]

mod abr;
mod app;
mod bulk;
mod call;
mod cloud_game;
mod conference;
mod distribution;
mod download;
mod draw;
mod factors;
mod live;
mod outcome;
mod player;
mod requests;
mod settings;
mod viewing;
mod vod;
mod web;
pub mod wire;
mod workload;

pub use abr::{Abr, Bola, Vlc};
pub use app::{
    APPLICATIONS, App, AppInfo, AppKind, Application, Command, Concurrency, Recipe, RequestId,
    Session, UnknownApp,
};
pub use bulk::{Bulk, BulkConfig};
pub use call::{
    AudioRecord, Call, CallConfig, CallRecord, Captured, Clip, FRAME_PACKETS_MAX, FrameRecord,
    Freezes, Lag, Moment, MomentKind, Picture, Point, Protection, Quality, Resolution, Rung, Still,
    VideoPacket,
};
pub use cloud_game::CloudGame;
pub use conference::Conference;
pub use distribution::CdnDistribution;
pub use download::{Download, DownloadConfig, Loop};
pub use factors::{AppFactors, Playback};
pub use live::{Live, LiveConfig};
pub use outcome::{ChunkRecord, Outcome, RequestRecord, VideoRecord};
pub use settings::{AppError, Form, Setting, Settings, Value};
pub use vod::{Vod, VodConfig, VodConfigError};
pub use web::{Clicks, Web, WebConfig};
pub use workload::{LineProblem, Workload, WorkloadError, WorkloadRequest, demo_text};

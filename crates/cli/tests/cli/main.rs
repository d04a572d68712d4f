//! The command as its users meet it: run as a program, judged by its output and exit code.

mod agent;
mod cmcd;
mod commands;
mod conform;
mod emu;
mod engine;
mod errors;
mod fetch;
mod fleet;
mod leaderboard;
mod papers;
mod parity;
mod plugins;
mod reproduce;
mod selection;
mod simulate;
mod support;
#[cfg(feature = "webrtc")]
mod webrtc;

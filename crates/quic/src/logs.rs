//! Where the servers of a run log what their congestion control does.

use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::scenario::Job;
use trimtab_noq::Qlog;
use trimtab_steer::scheme::Scheme;

use crate::error::QuicError;

/// To the folder that the environment variable `QLOGDIR` names; `None` without one.
pub(crate) fn from_env() -> Result<Option<Qlog>, QuicError> {
    let qlog = Qlog::from_env().map_err(QuicError::system("make the folder QLOGDIR"))?;
    Ok(qlog.map(Qlog::at_server))
}

/// The logs of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLogs<'a> {
    qlog: Option<&'a Qlog>,
    run: usize,
    seed: u64,
}

impl<'a> RunLogs<'a> {
    /// Those of a run, which its place in the plan names: that in the result's `runs`, too.
    pub(crate) fn new(qlog: Option<&'a Qlog>, prepared: &Prepared, job: &Job) -> Self {
        let run = prepared.plan.jobs.iter().position(|other| other == job).unwrap_or(0);
        Self { qlog, run, seed: job.seed }
    }

    /// That of a flow.
    pub(crate) fn of(self, flow: usize, scheme: &Scheme) -> Option<Qlog> {
        let Self { run, seed, .. } = self;
        let name = format!("run-{run}-{}-seed-{seed}-flow-{flow}", scheme.label());
        self.qlog.map(|qlog| qlog.named(&name))
    }

    /// Waits until all is written, once the run's connections are gone.
    pub(crate) fn flush(self) {
        if let Some(qlog) = self.qlog {
            qlog.flush();
        }
    }
}

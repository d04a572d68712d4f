//! Many links that one thread carries.

use trimtab_units::Duration;

use crate::error::EmuError;
use crate::report::Report;
use crate::topology::{Begun, Carrier, Config, Topology};

/// Topologies whose links one thread carries, for dozens of slow ones. A thread for each link wakes for
/// each packet, and on a virtual machine a wake-up costs more than the packet. This one looks at all
/// links once per grain, and handles what came and what is due.
///
/// A packet is seen up to a grain after it came, and leaves up to a grain late. The
/// [reports](Report) count the second only.
pub struct Bundle {
    topologies: Vec<Topology>,
    running: Option<(Carrier, Vec<Begun>)>,
}

impl Bundle {
    /// Starts a link in each topology, whose links do not run. `grain`: zero for a thread that every
    /// packet wakes; half a millisecond keeps departures within the millisecond that
    /// [`Fidelity::is_good`](crate::Fidelity::is_good) asks for.
    ///
    /// # Errors
    /// As [`Topology::start`].
    pub fn start(links: Vec<(Topology, Config)>, grain: Duration) -> Result<Self, EmuError> {
        let (mut topologies, mut carried, mut begun) = (Vec::new(), Vec::new(), Vec::new());
        for (topology, config) in links {
            let (one, of) = topology.prepare(&config, None)?;
            topologies.push(topology);
            carried.push(one);
            begun.push(of);
        }
        let carrier = Carrier::start(carried, grain)?;
        Ok(Self { topologies, running: Some((carrier, begun)) })
    }

    /// The topologies, in the order in which they were given.
    pub fn topologies(&self) -> &[Topology] {
        &self.topologies
    }

    /// Stops all links, with what is on them; the report of each.
    ///
    /// # Errors
    /// As [`Topology::stop`].
    pub fn stop(&mut self) -> Result<Vec<Report>, EmuError> {
        let (carrier, begun) =
            self.running.take().ok_or(EmuError::State("does not run; start it first"))?;
        let lost: Result<Vec<_>, _> =
            self.topologies.iter().map(Topology::lost_before_link).collect();
        let outcomes = carrier.stop()?.into_iter().zip(begun).zip(lost?);
        outcomes.map(|((outcome, begun), lost)| Topology::report(outcome, begun, lost)).collect()
    }
}

impl Drop for Bundle {
    fn drop(&mut self) {
        if self.running.is_some() {
            // Nobody is there for the reports.
            let _ = self.stop();
        }
    }
}

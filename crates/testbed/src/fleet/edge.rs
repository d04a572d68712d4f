//! An edge: a namespace with servers and an agent, a link to the engine, and an emulated link to its clients.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use trimtab_emu::{Config, Report, ServerSide, Topology};
use trimtab_kernel::unload_pins;
use trimtab_lab::run::links;
use trimtab_net::{Capacity, LinkConfig, LossConfig};
use trimtab_units::{Duration, Rate};

use super::scenario::{Clients, EdgePlan, KernelFleet};
use super::site::{Process, Site};
use super::traffic::{Crew, Servers};
use crate::course::SOCKET_MEMORY;
use crate::error::RealError;
use crate::rig;

/// From an edge to the engine and back.
const TO_ENGINE: Duration = Duration::from_millis(20);
/// Where the servers of the agent's rule listen; others from the next one on.
const PORT: u16 = 8000;
/// Connections at a time: a fleet on one machine has few.
const SLOTS: u32 = 4096;

/// An edge at work. Parts end in this order: servers, agent, links.
pub(super) struct Edge {
    pub(super) plan: EdgePlan,
    servers: Vec<Servers>,
    agent: Process,
    _pins: Pins,
    to_clients: Topology,
    _to_engine: Topology,
}

/// What the agent loads into the kernel; gone when this is dropped.
struct Pins(PathBuf);

impl Drop for Pins {
    fn drop(&mut self) {
        // What stays is removed by the next process that makes runs.
        let _ = unload_pins(&self.0);
    }
}

impl Edge {
    /// Makes the links, starts the agent, and waits until its servers run what they should.
    pub(super) fn start(
        plan: &EdgePlan,
        fleet: &KernelFleet,
        site: &Site,
    ) -> Result<Self, RealError> {
        let mut to_engine = site.place.run(|| Topology::new(ServerSide::Here))?;
        let only_delay =
            LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(TO_ENGINE.mul_f64(0.5));
        to_engine.start(&Config {
            down: only_delay.clone(),
            up: only_delay,
            seed: 0,
            log: None,
        })?;
        let to_clients = to_engine.client().run(|| Topology::new(ServerSide::Here))?;
        to_engine.client().set_sysctl("net.ipv4.tcp_wmem", SOCKET_MEMORY)?;
        to_clients.client().set_sysctl("net.ipv4.tcp_rmem", SOCKET_MEMORY)?;
        // What one arm's connections learnt of a path is nothing that the other's begin with.
        to_engine.client().set_sysctl("net.ipv4.tcp_no_metrics_save", "1")?;
        let (pins, suffix) = rig::place_of_its_own()?;
        let mut servers = Vec::new();
        for (port, algorithm) in
            (PORT..).zip([None].into_iter().chain(fleet.compare_with.iter().cloned().map(Some)))
        {
            let at = (to_clients.server_address(), port).into();
            servers.push(Servers::listen(to_engine.client(), at, algorithm)?);
        }
        let engine = Site::url(to_engine.server_address());
        let config = configure(plan, site, &engine, (&pins, &suffix))?;
        let log = site.folder.join(&plan.name).join("log");
        let pins = Pins(pins);
        let mut agent =
            Process::start(to_engine.client(), site.program(), &["agent"], &config, log)?;
        let wanted = format!("trimtab_pcc{suffix}");
        agent.wait_for("it gives the servers no algorithm", || {
            servers[0].algorithm().filter(|running| *running == wanted)
        })?;
        Ok(Self {
            plan: plan.clone(),
            servers,
            agent,
            _pins: pins,
            to_clients,
            _to_engine: to_engine,
        })
    }

    /// The destinations that the engine knows the clients by.
    pub(super) fn prefix(&self) -> String {
        let [a, b, c, _] = self.to_clients.client_address().octets();
        format!("{}/24", Ipv4Addr::new(a, b, c, 0))
    }

    /// Whether the agent still runs.
    pub(super) fn check(&mut self) -> Result<(), RealError> {
        self.agent.check()
    }

    /// Starts the link to the clients at a place of its trace that the seed says, and the clients,
    /// who talk to the servers of an arm: 0 is the agent's, others are compared with it.
    pub(super) fn begin(
        &mut self,
        arm: usize,
        clients: Clients,
        seed: u64,
    ) -> Result<Crew, RealError> {
        let EdgePlan { capacity, cell, .. } = &self.plan;
        let capacity = links::at_seed(capacity, seed);
        let (there, back) = cell.rtt.halves();
        let loss = cell.loss.get();
        let down = LinkConfig::new(capacity.clone())
            .queue(cell.queue(capacity.mean_rate()))
            .loss(if loss > 0.0 { LossConfig::Independent(loss) } else { LossConfig::None })
            .delay(there);
        let up = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(back);
        self.to_clients.start(&Config { down, up, seed, log: None })?;
        let port = PORT + arm as u16;
        let server = (self.to_clients.server_address(), port);
        Crew::start(self.to_clients.client(), server, clients, seed)
    }

    /// Breaks off what is left of an arm, and stops the link; what it did.
    pub(super) fn end(&mut self, arm: usize) -> Result<Report, RealError> {
        self.servers[arm].hang_up();
        Ok(self.to_clients.stop()?)
    }
}

/// The agent's configuration, in the edge's folder.
fn configure(
    plan: &EdgePlan,
    site: &Site,
    engine: &str,
    (pins, suffix): (&std::path::Path, &str),
) -> Result<PathBuf, RealError> {
    let folder = site.folder.join(&plan.name);
    let (run, service) = (folder.join("run"), site.service());
    let text = format!(
        "[sockets]\nfolder = {run:?}\n\n[datapath]\nfolder = {pins:?}\nsuffix = {suffix:?}\nslots = {SLOTS}\n\n\
         [fleet]\nengine = {engine:?}\ntoken_file = \"edge.token\"\nfolder = \"edge\"\n\n\
         [[rule]]\nname = {service:?}\nport = {PORT}\nassign = true\nsteer = \"fleet\"\nservice = {service:?}\n"
    );
    let config = folder.join("agent.toml");
    let token = site.token(&plan.name)?;
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("edge.token"), token))
        .and_then(|()| fs::write(&config, text))
        .map_err(RealError::system("write the configuration of an agent"))?;
    Ok(config)
}

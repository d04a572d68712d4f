//! nginx behind an emulated link.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};

use trimtab_emu::{Config, ServerSide, Topology};
use trimtab_kernel::Datapath;
use trimtab_net::{Capacity, LinkConfig, QueueConfig};
use trimtab_units::{Bytes, Duration, Rate};

use crate::common::wait_for;
use crate::setup::{Agent, Setup};

/// Of the downlink, in Mbit/s.
pub(crate) const LINK_MBPS: f64 = 12.0;

/// Whether a program is in the search path. CI has to have it.
pub(crate) fn has_program(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    assert!(
        found || std::env::var_os("CI").is_none_or(|ci| ci.is_empty()),
        "there is no {program}, and CI is set: run `./dev test`, which installs it, or install Debian's package"
    );
    found
}

/// Leaves the test, and says why, where a program is missing.
macro_rules! need_programs {
    ($($program:literal),+) => {
        for program in [$($program),+] {
            if !crate::web::has_program(program) {
                eprintln!("skipped: there is no {program}");
                return;
            }
        }
    };
}
pub(crate) use need_programs;

/// A server with this algorithm as its default, since nobody picks one, and a client 20 ms away
/// behind a link with 66 ms of buffer.
fn behind_a_link(algorithm: &str) -> Topology {
    let mut topology = Topology::new(ServerSide::Private).expect("a topology");
    let sysctl = "/proc/sys/net/ipv4/tcp_congestion_control";
    let algorithm = algorithm.to_owned();
    topology.server().run(move || std::fs::write(sysctl, algorithm)).expect("a default algorithm");
    let down = LinkConfig::new(Capacity::Constant(Rate::from_mbps(LINK_MBPS)))
        .queue(QueueConfig::drop_tail_bytes(Bytes::new(100_000)))
        .delay(Duration::from_millis(10));
    let up = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(Duration::from_millis(10));
    topology.start(&Config { down, up, seed: 1, log: None }).expect("a link");
    topology
}

/// A link, and an agent on its server that steers video from this port.
pub(crate) fn with_an_agent(setup: &Setup, port: u16) -> (Topology, Agent) {
    setup.configure(
        "",
        &format!("[[rule]]\nname = \"video\"\nport = {port}\nqoe = \"vod\"\nsteer = \"mortise\"\n"),
    );
    // The link needs the algorithm, and the agent the link.
    let loaded = Datapath::load(&setup.options()).expect("load");
    let topology = behind_a_link(&setup.algorithm());
    let agent = setup.start_at(topology.server());
    drop(loaded);
    (topology, agent)
}

/// What nginx is to serve.
pub(crate) struct Site {
    pub(crate) port: u16,
    /// Names and contents.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

impl Site {
    /// Starts nginx on the server's side and waits until the client can connect. What is asked of
    /// `/report?…` is written, line by line, to `folder/reports`.
    pub(crate) fn serve(&self, topology: &Topology, folder: &Path) -> Nginx {
        let www = folder.join("www");
        std::fs::create_dir_all(&www).expect("a folder");
        for (name, contents) in &self.files {
            std::fs::write(www.join(name), contents).expect("a file");
        }
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {}/{kind};", folder.display()))
            .join(" ");
        let (folder, port) = (folder.display(), self.port);
        let config = format!(
            "daemon off; master_process off; user root; pid {folder}/pid; error_log {folder}/error.log;\n\
             events {{}}\n\
             http {{ access_log off; sendfile on; {temporary}\n\
             types {{ text/html html; video/webm webm; }}\n\
             log_format told $args;\n\
             server {{ listen {port}; root {folder}/www;\n\
             location = /report {{ access_log {folder}/reports told; return 204; }} }} }}\n"
        );
        let path = format!("{folder}/nginx.conf");
        std::fs::write(&path, config).expect("a configuration");
        let child =
            topology.server().run(move || Command::new("nginx").args(["-c", &path]).spawn());
        let nginx = Nginx(child.expect("nginx starts"));
        let server = topology.server_address();
        wait_for("nginx", || {
            topology.client().run(move || TcpStream::connect((server, port)).ok())
        });
        nginx
    }
}

/// nginx, in one process; ends when dropped.
pub(crate) struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

//! A sending host of its own, so that its processor time can be told from the rest.
//!
//! `sender` and `router` are network namespaces with a veth pair between them.
//! [`Hosts::in_threads`] has both ends take packets in kernel threads of their own (threaded NAPI),
//! not in whatever the processor did just then: what the sender's TCP does with an acknowledgement
//! is then the time of the thread `napi/tts-…`.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;
use std::thread::JoinHandle;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::{BenchError, system};

/// The sender's address.
pub(crate) const SENDER: Ipv4Addr = Ipv4Addr::new(10, 78, 1, 1);

const SENDER_NETNS: &str = "tt-bench-sender";
const ROUTER_NETNS: &str = "tt-bench-router";
/// The sender's device, by which its thread is called.
const DEVICE: &str = "tts";

/// One of the two.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Host {
    Sender,
    Router,
}

/// Both hosts; gone when dropped, by the process that made them.
pub(crate) struct Hosts {
    ours: bool,
}

fn command(line: &str) -> Result<(), BenchError> {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap_or_default()).args(words).output();
    let output = output.map_err(system("run a program (is it installed?)"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(BenchError::System { what: "set up the hosts", reason: format!("`{line}`: {said}") })
}

impl Hosts {
    pub(crate) fn new() -> Result<Self, BenchError> {
        let hosts = Self { ours: true };
        hosts.remove(); // what a run that was killed has left
        for line in [
            format!("ip netns add {SENDER_NETNS}"),
            format!("ip netns add {ROUTER_NETNS}"),
            format!(
                "ip -n {SENDER_NETNS} link add {DEVICE} type veth peer name ttr netns {ROUTER_NETNS}"
            ),
            format!("ip -n {SENDER_NETNS} addr add {SENDER}/24 dev {DEVICE}"),
            format!("ip -n {ROUTER_NETNS} addr add 10.78.1.254/24 dev ttr"),
            format!("ip -n {SENDER_NETNS} link set {DEVICE} up"),
            format!("ip -n {ROUTER_NETNS} link set ttr up"),
            format!("ip -n {ROUTER_NETNS} link set lo up"),
            format!("ip -n {SENDER_NETNS} route add default via 10.78.1.254"),
        ] {
            command(&line)?;
        }
        echo(ROUTER_NETNS, "1", "/proc/sys/net/ipv4/ip_forward")?;
        for name in ["tcp_wmem", "tcp_rmem"] {
            echo(SENDER_NETNS, "4096 131072 67108864", &format!("/proc/sys/net/ipv4/{name}"))?;
            echo(ROUTER_NETNS, "4096 131072 67108864", &format!("/proc/sys/net/ipv4/{name}"))?;
        }
        Ok(hosts)
    }

    /// Those of the process that started this one.
    pub(crate) fn of_others() -> Self {
        Self { ours: false }
    }

    /// Both ends take packets in threads of their own from here on. veth does so for devices that
    /// merge packets, with packets of devices that do not offload segmentation; so the sender cuts
    /// its segments itself.
    pub(crate) fn in_threads(self) -> Result<Self, BenchError> {
        for (netns, device) in [(SENDER_NETNS, DEVICE), (ROUTER_NETNS, "ttr")] {
            command(&format!("ip netns exec {netns} ethtool -K {device} gro on tso off"))?;
            echo(netns, "1", &format!("/sys/class/net/{device}/threaded"))?;
        }
        Ok(self)
    }

    fn remove(&self) {
        for netns in [SENDER_NETNS, ROUTER_NETNS] {
            // It may not be there.
            let _ = Command::new("ip").args(["netns", "del", netns]).output();
        }
    }

    /// Starts a thread in a host.
    pub(crate) fn thread<T: Send + 'static>(
        &self,
        host: Host,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<JoinHandle<io::Result<T>>, BenchError> {
        let netns = match host {
            Host::Sender => SENDER_NETNS,
            Host::Router => ROUTER_NETNS,
        };
        let file = File::open(format!("/run/netns/{netns}")).map_err(system("open a namespace"))?;
        Ok(std::thread::spawn(move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        }))
    }

    /// Does something in a host, and waits for it.
    pub(crate) fn within<T: Send + 'static>(
        &self,
        host: Host,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, BenchError> {
        let ended = self.thread(host, work)?.join();
        let ended = ended.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        ended.map_err(system("do something in a network namespace"))
    }

    /// By which the kernel's structures know the sender's namespace.
    pub(crate) fn sender_inode(&self) -> Result<u32, BenchError> {
        let about = std::fs::metadata(format!("/run/netns/{SENDER_NETNS}"));
        // The kernel numbers namespaces with 32 bits.
        Ok(about.map_err(system("look at a namespace"))?.ino() as u32)
    }

    /// The thread that takes the sender's packets from its device.
    pub(crate) fn receiving_thread(&self) -> Result<i32, BenchError> {
        let name = format!("napi/{DEVICE}-");
        let processes = std::fs::read_dir("/proc").map_err(system("read /proc"))?;
        processes
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .find(|pid| {
                std::fs::read_to_string(format!("/proc/{pid}/comm"))
                    .is_ok_and(|comm| comm.starts_with(&name))
            })
            .ok_or(BenchError::System {
                what: "find the thread of the sender's device",
                reason: format!("no thread is called {name}…; threaded NAPI needs Linux 5.12"),
            })
    }
}

/// Writes to a file as a namespace sees it.
fn echo(netns: &str, value: &str, file: &str) -> Result<(), BenchError> {
    let output = Command::new("ip")
        .args(["netns", "exec", netns, "sh", "-c", &format!("echo {value} > {file}")])
        .output()
        .map_err(system("run ip"))?;
    if output.status.success() {
        return Ok(());
    }
    let reason = format!("{file}: {}", String::from_utf8_lossy(&output.stderr));
    Err(BenchError::System { what: "set up the hosts", reason })
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if self.ours {
            self.remove();
        }
    }
}

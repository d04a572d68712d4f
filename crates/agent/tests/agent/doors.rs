//! The doors of an agent on a real kernel: the service manager, metrics, the control socket and who may use it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;

use rustix::process::Signal;

use crate::common::{self, need_kernel, wait_for};
use crate::setup::Setup;

#[test]
fn the_service_manager_is_notified_of_ready_reload_and_stop() {
    need_kernel!();
    let setup = Setup::new("_f");
    setup.configure("", "");
    let path = setup.folder().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    // Loading takes long on a busy machine.
    manager.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let hear = |what: &str| {
        let mut buffer = [0; 256];
        loop {
            let length = manager.recv(&mut buffer).unwrap_or_else(|e| panic!("{what}: {e}"));
            let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if message.starts_with(what) {
                return message;
            }
        }
    };
    let mut agent = setup.spawn_with(&[("NOTIFY_SOCKET", path.as_os_str())]);
    hear("READY=1");
    assert!(agent.status().is_some(), "who is ready answers");
    hear("WATCHDOG=1");
    agent.signal(Signal::HUP);
    let message = hear("RELOADING=1");
    assert!(message.contains("MONOTONIC_USEC="), "{message}");
    hear("READY=1");
    agent.signal(Signal::TERM);
    hear("STOPPING=1");
    assert_eq!(agent.wait().code(), Some(0));
}

#[test]
fn metrics_are_served_and_the_control_socket_is_roots() {
    need_kernel!();
    let setup = Setup::new("_g");
    // A port that is free now; nobody else of these tests takes it meanwhile.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let sockets = format!("metrics = \"{address}\"");
    setup.configure_sockets("", &sockets, "[[rule]]\nname = \"all\"\nknobs = { delta = 0.25 }\n");
    let agent = setup.start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    rustix::net::sockopt::set_tcp_congestion(&stream, &setup.algorithm()).unwrap();
    wait_for("the connection", || agent.flow(stream.local_addr().unwrap().port()));

    let mut scrape = TcpStream::connect(address).unwrap();
    scrape.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut page = String::new();
    scrape.read_to_string(&mut page).unwrap();
    assert!(
        page.contains("\ntrimtab_open_connections{rule=\"all\",arm=\"treated\"} 1.0\n"),
        "{page}"
    );
    assert!(!page.contains("127.0.0.1"), "no series of a connection: {page}");

    let mode = std::fs::metadata(setup.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let look = trimtab_agent::look(&setup.socket()).unwrap();
    assert_eq!((look.status.open, look.flows.len()), (1, 1));
}

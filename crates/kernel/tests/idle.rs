//! What happens when a connection sends again after it had nothing in flight: the kernel tells an
//! algorithm of it, by one operation or another (`src/kernel.rs`). On a real kernel; skipped, with
//! the reason, where it or the rights are missing.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use rustix::net::sockopt::set_tcp_congestion;
use trimtab_cc::migrate::Switch;
use trimtab_kernel::Algorithm;

use common::{Loaded, Wire, need_kernel, wait_for};

/// Two ends of a connection over the loopback device of this network namespace, the first with this algorithm.
fn connect(algorithm: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("[::1]:0").unwrap();
    set_tcp_congestion(&listener, algorithm).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener.accept().unwrap().0, client)
}

fn send(from: &mut TcpStream, to: &mut TcpStream, bytes: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| from.write_all(&vec![1; bytes]).unwrap());
        to.read_exact(&mut vec![0; bytes]).unwrap();
    });
}

/// An algorithm that knows nothing yet gives way to another when the next packet leaves while none
/// is in flight, and at no other time.
#[test]
fn an_algorithm_gets_the_event_of_the_first_packet_after_an_idle_time() {
    need_kernel!();
    let loaded = Loaded::new("_i", 8);
    let wire = Wire::new("idle");
    wire.spawn("a", move || {
        let pairs = [
            (Algorithm::Copa, Algorithm::Cubic),
            (Algorithm::Cubic, Algorithm::Bbr),
            (Algorithm::Bbr, Algorithm::Bbr3),
            (Algorithm::Bbr3, Algorithm::Vivace),
            (Algorithm::Vivace, Algorithm::Copa),
        ];
        for (from, to) in pairs {
            let (mut server, mut client) = connect(&loaded.datapath().name_of(from));
            send(&mut server, &mut client, 10);
            let flow = wait_for("the slot", || loaded.datapath().flows().next());
            assert_eq!(flow.algorithm(), from);
            flow.switch(to, None, Switch::Full).unwrap();
            // Its acknowledgement has come: nothing is in flight.
            wait_for("the acknowledgement", || {
                (flow.sample()?.inflight.is_zero() && flow.sample()?.acks > 0).then_some(())
            });
            send(&mut server, &mut client, 10);
            let switched = || (flow.switching()?.switches == 1).then_some(());
            wait_for(&format!("the change from {} to {}", from.name(), to.name()), switched);
            assert_eq!(flow.algorithm(), to);
            drop((server, client));
            wait_for("the end", || (loaded.datapath().stats().live == 0).then_some(()));
        }
    })
    .join()
    .unwrap();
}

//! Connections that this host opens, by the socket option or the system's default. On a real
//! kernel; skipped, with the reason, where it or the rights are missing.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use trimtab_kernel::Algorithm;

use common::{Loaded, Wire, need_kernel, wait_for};

/// The kernel calls `cong_control` for the acknowledgement of the SYN before it calls `init`. Each
/// end has one slot all the same.
#[test]
fn a_connection_that_is_opened_here_has_one_slot() {
    need_kernel!();
    let loaded = Loaded::new("_7", 8);
    let wire = Wire::new("active");
    for (count, algorithm) in (1..).zip(Algorithm::ALL) {
        wire.set_default("a", &loaded.datapath().name_of(algorithm));
        let pair = wire.spawn("a", || {
            let listener = TcpListener::bind("[::1]:0").unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let mut server = listener.accept().unwrap().0;
            client.write_all(&[1; 10_000]).unwrap();
            server.read_exact(&mut [0; 10_000]).unwrap();
            server.write_all(&[1; 10_000]).unwrap();
            client.read_exact(&mut [0; 10_000]).unwrap();
            (client, server)
        });
        let pair = pair.join().unwrap();
        let found: Vec<_> = loaded.datapath().flows().map(|flow| *flow.identity()).collect();
        assert_eq!(found.len(), 2, "{}: {found:?}", algorithm.name());
        assert_eq!(loaded.datapath().stats().opened, 2 * count);
        drop(pair);
        wait_for("the end", || (loaded.datapath().stats().live == 0).then_some(()));
    }
    wire.set_default("a", "reno");
}

use s2n_quic_core::event::IntoEvent;
use s2n_quic_core::event::builder;
use s2n_quic_core::inet::SocketAddress as Address;
use s2n_quic_core::path;
use s2n_quic_core::recovery::congestion_controller::CongestionController;
use s2n_quic_core::time::{Clock as _, NoopClock};
use trimtab_stack::{Arm, Share};

use super::*;

fn meta() -> ConnectionMeta {
    let timestamp = NoopClock.get_time();
    let endpoint_type = s2n_quic_core::endpoint::Type::Server;
    builder::ConnectionMeta { endpoint_type, id: 0, timestamp }.into_event()
}

/// The endpoint begins a connection.
pub(crate) fn connect(events: &mut Events) -> Connected {
    events.create_connection_context(
        &meta(),
        &builder::ConnectionInfo { application: None }.into_event(),
    )
}

fn path(controllers: &mut Controllers) -> PathController {
    let address = Address::default();
    controllers.new_congestion_controller(PathInfo::new(&path::mtu::Config::default(), &address))
}

/// The event of a new path, with this context.
fn created(events: &mut Events, connected: &mut Connected) {
    let address = Address::default();
    let of = |id| builder::Path {
        local_addr: address.into_event(),
        local_cid: builder::ConnectionId { bytes: &[] },
        remote_addr: address.into_event(),
        remote_cid: builder::ConnectionId { bytes: &[] },
        id,
        is_active: id == 0,
    };
    let event = builder::PathCreated { active: of(0), new: of(1) };
    events.on_path_created(connected, &meta(), &event.into_event());
}

#[test]
fn connections_from_one_address_have_a_handle_each() {
    let (mut controllers, mut events) = endpoint(Config::new("cubic").unwrap());
    let pairs = [(); 2].map(|()| (connect(&mut events), path(&mut controllers)));
    pairs[1].0.handle().unwrap().set_scheme("bbr3").unwrap();
    let schemes = pairs.each_ref().map(|(of, _)| of.handle().unwrap().scheme());
    assert_eq!(schemes, ["cubic", "bbr3"]);
}

/// RFC 9000 §9.4: a fresh path, with what was set last.
#[test]
fn a_connection_that_moves_keeps_its_handle() {
    let (mut controllers, mut events) = endpoint(Config::new("cubic").unwrap());
    let mut moving = connect(&mut events);
    let first = path(&mut controllers);
    let other = connect(&mut events);
    let apart = path(&mut controllers);
    moving.handle().unwrap().set_scheme("copa:delta=0.1").unwrap();
    let second = path(&mut controllers);
    created(&mut events, &mut moving);
    assert!(second.congestion_window() > 0);
    let paths = moving.handle().unwrap().all_metrics();
    let schemes: Vec<_> = paths.iter().map(|path| path.scheme.as_str()).collect();
    assert_eq!(schemes, ["copa:delta=0.1", "copa:delta=0.1"]);
    assert_eq!(paths[1].algorithm, "copa", "it begins so");
    assert_eq!(other.handle().unwrap().all_metrics().len(), 1);
    drop((first, apart));
}

#[test]
fn without_events_a_path_runs_the_scheme_all_the_same() {
    let (mut controllers, events) = endpoint(Config::new("cubic").unwrap());
    drop(events);
    assert!(path(&mut controllers).congestion_window() > 0);
    let (controllers, mut events) = endpoint(Config::new("cubic").unwrap());
    drop(controllers);
    assert!(connect(&mut events).handle().is_none(), "nothing steers it");
}

#[test]
fn the_peers_address_chooses_the_scheme_and_the_arm() {
    let (mut controllers, mut events) = endpoint_with(|peer| {
        assert_eq!(peer.port(), 0);
        Config::new("mortise").unwrap().with_holdback(Share::new(1.0))
    });
    let connected = connect(&mut events);
    let _path = path(&mut controllers);
    let metrics = connected.handle().unwrap().metrics().unwrap();
    assert_eq!((metrics.arm, metrics.algorithm), (Arm::Holdback, "copa"));
}

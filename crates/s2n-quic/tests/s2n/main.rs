//! Real sockets: the adapter under s2n-quic's own loss detection, timers and encryption.

#[path = "../../examples/s2n_server_and_client.rs"]
#[expect(dead_code, unreachable_pub, reason = "a program of its own")]
mod example;
mod pair;

use pair::Pair;
use trimtab_s2n_quic::{Arm, Config, Share};

/// A machine that stalls is slow, and no less right.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);
const RESPONSE: usize = 2_000_000;

#[tokio::test]
async fn the_example_serves_all_responses_and_switches() {
    let run = tokio::time::timeout(LIMIT, example::run());
    let (received, metrics) = run.await.expect("it ends in time").expect("it works");
    assert_eq!(received, 16_200_000);
    assert_eq!(metrics.scheme, "bbr3");
    assert!(metrics.delivered.get() > 16_200_000 && metrics.refused == 0, "{metrics:?}");
}

#[tokio::test]
async fn each_kind_of_scheme_carries_a_response() {
    for scheme in ["bbr3", "cubic", "copa:mvfst", "mortise", "vivace", "muses", "floo"] {
        let mut pair = Pair::new(Config::new(scheme).unwrap());
        let mut connected = pair.connect().await;
        let carried = tokio::time::timeout(LIMIT, connected.carry(RESPONSE)).await;
        assert_eq!(carried.unwrap_or_else(|_| panic!("{scheme} takes too long")), RESPONSE);
        let metrics = connected.handle.metrics().unwrap();
        assert_eq!((metrics.scheme.as_str(), metrics.refused), (scheme, 0));
        let whole = metrics.delivered + metrics.inflight + metrics.lost;
        assert!(whole.get() >= RESPONSE as u64 && whole <= metrics.sent, "{metrics:?}");
        assert!(metrics.srtt.is_some() && metrics.delivery_rate.is_some(), "{metrics:?}");
    }
}

/// Both have the address of the one client.
#[tokio::test]
async fn two_connections_of_one_client_are_steered_apart() {
    let mut pair = Pair::new(Config::new("cubic").unwrap());
    let (mut first, mut second) = (pair.connect().await, pair.connect().await);
    second.handle.set_scheme("copa:delta=0.1").unwrap();
    for connected in [&mut first, &mut second] {
        assert_eq!(connected.carry(RESPONSE).await, RESPONSE);
    }
    let [first, second] = [first, second].map(|connected| connected.handle.metrics().unwrap());
    assert_eq!((first.scheme.as_str(), first.algorithm), ("cubic", "cubic"));
    assert_eq!(second.scheme, "copa:delta=0.1");
    assert!(first.delivered.get() >= RESPONSE as u64 && second.delivered.get() >= RESPONSE as u64);
}

#[tokio::test]
async fn the_holdback_keeps_the_baseline_whatever_the_caller_sets() {
    let mut pair = Pair::new(Config::new("mortise").unwrap().with_holdback(Share::new(1.0)));
    let mut connected = pair.connect().await;
    connected.handle.set_scheme("bbr3").unwrap();
    assert_eq!(connected.carry(RESPONSE).await, RESPONSE);
    let metrics = connected.handle.metrics().unwrap();
    assert_eq!((metrics.arm, metrics.scheme.as_str()), (Arm::Holdback, "copa"));
}

//! Real sockets: the example runs to its end.

#[path = "../../examples/quinn_server_and_client.rs"]
#[expect(dead_code, unreachable_pub, reason = "a program of its own")]
mod example;

#[tokio::test]
async fn the_example_serves_all_responses_and_switches() {
    let run = tokio::time::timeout(std::time::Duration::from_secs(20), example::run());
    let (received, metrics) = run.await.expect("it ends in time").expect("it works");
    assert_eq!(received, 16_200_000);
    assert_eq!(metrics.scheme, "bbr3");
    assert!(metrics.delivered.get() > 16_200_000 && metrics.refused == 0, "{metrics:?}");
}

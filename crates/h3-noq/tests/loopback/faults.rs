//! Clients that vanish or change their mind, and files that change.

use std::time::Duration;

use h3::error::{Code, StreamError};
use http::Method;
use trimtab_h3_noq::h3;

use crate::client::session::piece;
use crate::support::{Files, Response, connect, get, hash, noise, request};

#[tokio::test]
async fn a_client_that_vanishes_is_given_up_and_harms_nobody() {
    let contents = noise(40_000_000, 5);
    let files = Files::serve("mortise", &[("large", &contents), ("small", b"small")]);
    let address = files.address;
    let vanished = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let session = connect(address).await;
            let mut stream = session.send(request(Method::GET, "/large", &[])).await.unwrap();
            stream.recv_response().await.unwrap();
            piece(&mut stream).await.unwrap().expect("some of the body");
            // Nothing is closed any more when the runtime is gone.
            std::mem::forget((session, stream));
        });
    });
    let joined = tokio::task::spawn_blocking(|| vanished.join()).await.expect("a thread");
    joined.expect("the client");
    let session = files.connect().await;
    assert_eq!(get(&session, "/small").await.body, b"small");
    session.end().await;
    let mut reports = files.reports(2).await;
    reports.sort_by_key(|report| report.responses);
    let [vanished, other] = &*reports else { panic!("{reports:?}") };
    assert_eq!((vanished.responses, other.responses), (0, 1), "{reports:?}");
    assert!(vanished.lasted >= Duration::from_secs(2), "the time that silence may last");
}

#[tokio::test]
async fn a_response_that_is_cancelled_leaves_the_others_alone() {
    let contents = noise(10_000_000, 6);
    let files = Files::serve("bbr", &[("a", &contents), ("b", &contents)]);
    let session = files.connect().await;
    let mut unwanted = session.send(request(Method::GET, "/a", &[])).await.unwrap();
    let wanted = session.send(request(Method::GET, "/b", &[])).await.unwrap();
    unwanted.recv_response().await.unwrap();
    piece(&mut unwanted).await.unwrap().expect("some of the body");
    unwanted.stop_sending(Code::H3_REQUEST_CANCELLED);
    assert_eq!(hash(&Response::of(wanted).await.body), hash(&contents));
    session.end().await;
    let report = files.report().await;
    assert_eq!(report.responses, 1, "{report}");
}

/// What has arrived must not pass for the whole file.
#[tokio::test]
async fn a_file_that_becomes_shorter_resets_its_stream_alone() {
    let contents = noise(60_000_000, 7);
    let files = Files::serve("cubic", &[("large", &contents), ("small", b"small")]);
    let session = files.connect().await;
    let mut stream = session.send(request(Method::GET, "/large", &[])).await.unwrap();
    stream.recv_response().await.unwrap();
    let shorter = std::fs::File::options().write(true).open(files.www().join("large")).unwrap();
    shorter.set_len(0).unwrap();
    let problem = loop {
        match piece(&mut stream).await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it passed for whole"),
            Err(problem) => break problem,
        }
    };
    let problem = problem.downcast::<StreamError>().expect("an error of the stream");
    let StreamError::RemoteTerminate { code, .. } = *problem else { panic!("{problem}") };
    assert_eq!(code, Code::H3_INTERNAL_ERROR);
    assert_eq!(get(&session, "/small").await.body, b"small");
}

use trimtab_units::Time;

use super::*;

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn clients(count: u32, size: (u64, u64), pause_ms: u64) -> Clients {
    let size = (Bytes::new(size.0), Bytes::new(size.1));
    Clients { count, size, pause: Duration::from_millis(pause_ms) }
}

/// Servers on a port of this machine.
fn servers(algorithm: Option<&str>) -> (Servers, u16, Namespace) {
    let place = Namespace::current().unwrap();
    let at = (HERE, 0).into();
    let servers = Servers::listen(&place, at, algorithm.map(str::to_owned)).unwrap();
    let port = servers.listener.local_addr().unwrap().port();
    (servers, port, place)
}

/// What clients did until each had done so much, and with that in a while that grows.
fn downloads(least: usize, clients: Clients, seed: u64) -> Downloads {
    let (_servers, port, place) = servers(None);
    for wait_ms in [200, 1000, 5000, 25_000] {
        let crew = Crew::start(&place, (HERE, port), clients, seed).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait_ms));
        let downloads = crew.end().unwrap();
        if downloads.done.iter().all(|done| done.len() >= least) {
            return downloads;
        }
    }
    panic!("no {least} downloads in 25 s")
}

#[test]
fn a_seed_makes_the_same_downloads_and_each_client_its_own() {
    let clients = clients(2, (1000, 100_000), 1);
    let [one, same, other] = [3, 3, 4].map(|seed| downloads(5, clients, seed));
    let sizes = |all: &Downloads, client: usize| -> Vec<u64> {
        all.done[client][..5].iter().map(|download| download.size.get()).collect()
    };
    assert_eq!(one.done.len(), 2);
    for client in 0..2 {
        assert_eq!(sizes(&one, client), sizes(&same, client));
        assert_ne!(sizes(&one, client), sizes(&other, client));
    }
    assert_ne!(sizes(&one, 0), sizes(&one, 1));
    for download in one.done.iter().flatten() {
        assert!((1000..=100_000).contains(&download.size.get()), "{download:?}");
        assert!(!download.took.is_zero(), "{download:?}");
    }
}

/// As many files lie below the geometric mean of the ends as above it.
#[test]
fn sizes_are_log_uniform() {
    let all = downloads(60, clients(4, (100, 10_000), 0), 1);
    let sizes: Vec<f64> =
        all.done.iter().flat_map(|done| &done[..60]).map(|d| d.size.as_f64()).collect();
    let small = sizes.iter().filter(|size| **size < 1000.0).count();
    // 240 coins: 120 and four standard deviations. The seed is fixed.
    assert!((90..=150).contains(&small), "{small} of {}", sizes.len());
}

#[test]
fn what_nobody_answers_counts_as_failed() {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let place = Namespace::current().unwrap();
    let crew = Crew::start(&place, (HERE, port), clients(2, (10, 10), 1), 0).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    let all = crew.end().unwrap();
    assert_eq!(all.done, [vec![], vec![]]);
    assert!(all.failed > 0);
}

#[test]
fn an_answer_that_ends_early_is_no_download() {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let size = wire::read(&mut socket).unwrap();
        socket.write_all(&vec![0; size.get() as usize - 1]).unwrap();
    });
    let client = Client {
        server: (HERE, port).into(),
        clients: clients(1, (5000, 5000), 0),
        random: Pcg64Mcg::seed_from_u64(0),
        stop: Arc::default(),
        abort: Arc::default(),
    };
    let size = Bytes::new(5000);
    let error = client.fetch(size, Clock::start(), &mut [0; 4096]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    server.join().unwrap();
}

/// The server never answers; the end of the crew does not wait for it.
#[test]
fn what_hangs_is_broken_off_at_the_end_and_counts_as_failed() {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let place = Namespace::current().unwrap();
    let crew = Crew::start(&place, (HERE, port), clients(2, (1000, 1000), 0), 0).unwrap();
    let open = [listener.accept().unwrap(), listener.accept().unwrap()];
    crew.stop();
    assert!(!crew.is_done(), "both wait for an answer");
    let begin = std::time::Instant::now();
    let all = crew.end().unwrap();
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
    assert_eq!((all.done, all.failed), (vec![vec![], vec![]], 2));
    drop(open);
}

#[test]
fn servers_hang_up_on_what_is_still_open() {
    let (servers, port, _place) = servers(None);
    let mut socket = TcpStream::connect((HERE, port)).unwrap();
    let endless = Bytes::new(1 << 50);
    socket.write_all(&wire::encode(endless, Bytes::ZERO)).unwrap();
    let mut buffer = vec![0; PIECE];
    assert!(socket.read(&mut buffer).unwrap() > 0);
    servers.hang_up();
    let clock = Clock::start();
    while !matches!(socket.read(&mut buffer), Ok(0) | Err(_)) {
        assert!(clock.now() < Time::from_secs(30), "it is still sent");
    }
    // The next connection is served all the same.
    let mut next = TcpStream::connect((HERE, port)).unwrap();
    next.write_all(&wire::encode(Bytes::new(3), Bytes::ZERO)).unwrap();
    next.read_exact(&mut [0; 3]).unwrap();
}

/// Every Linux has Reno, and lets any user take it.
#[test]
fn servers_have_the_algorithm_that_they_were_given() {
    let (reno, ..) = servers(Some("reno"));
    assert_eq!(reno.algorithm().as_deref(), Some("reno"));
    let place = Namespace::current().unwrap();
    let none = Servers::listen(&place, (HERE, 0).into(), Some("no-such".to_owned()));
    let message = none.unwrap_err().to_string();
    assert!(message.starts_with("cannot listen in the namespace of an edge: "), "{message}");
}

#[test]
fn clients_that_are_stopped_in_a_pause_end_soon() {
    let (_servers, port, place) = servers(None);
    let crew = Crew::start(&place, (HERE, port), clients(3, (10, 10), 3_600_000), 0).unwrap();
    let clock = Clock::start();
    crew.stop();
    while !crew.is_done() {
        assert!(clock.now() < Time::from_secs(30), "they sleep on");
        std::thread::sleep(LOOK);
    }
    assert_eq!(crew.end().unwrap().failed, 0);
}

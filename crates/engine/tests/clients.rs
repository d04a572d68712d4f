//! Edges and people that ask with a certificate instead of a token: what it lets them do, and each
//! way in which it is refused.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{Process, Site, batch, now_ms, report, until};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType};
use serde_json::json;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use trimtab_fleet_client::edge::{Edge, Key, Options};
use trimtab_fleet_client::{Client, Error, Name, Role, Secret};

#[test]
fn engine_process() {
    common::run_if_asked();
}

/// An authority that signs certificates of clients.
struct Authority {
    params: CertificateParams,
    key: KeyPair,
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self { params, key: KeyPair::generate().unwrap() }
    }

    fn certificate(&self) -> String {
        pem("CERTIFICATE", self.params.self_signed(&self.key).unwrap().der())
    }

    /// A certificate of a name and its key, written into a folder; it expires in so many seconds.
    fn sign(&self, folder: &Path, name: &str, lasts_s: i64) -> Secret {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        let own = name.try_into().unwrap();
        params.subject_alt_names = vec![match name.contains("://") {
            true => SanType::URI(own),
            false => SanType::DnsName(own),
        }];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        let expires_s = (now_ms() / 1000 + lasts_s) as u64;
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(expires_s);
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::from_params(&self.params, &self.key);
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let (chain, own) = (folder.join("own.pem"), folder.join("own.key"));
        std::fs::write(&chain, pem("CERTIFICATE", certificate.der())).unwrap();
        std::fs::write(&own, pem("PRIVATE KEY", &key.serialize_der())).unwrap();
        Secret::Certificate { certificate: chain, key: own }
    }
}

/// The name of our authority.
const OURS: &str = "clients of the test";
const DAY_S: i64 = 24 * 3600;
const YEAR_S: i64 = 365 * DAY_S;

const RULES: &str = "[[client]]\nname = \"*.edges.example\"\nrole = \"edge\"\nservices = [\"tv\"]\n\
    prefixes = [\"203.0.113.0/24\"]\n[[client]]\nname = \"spiffe://example/people/kim\"\n\
    role = \"operator\"\n[[client]]\nname = \"robin.example\"\nrole = \"viewer\"\n";

fn data(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")).join(name)
}

fn site(authority: &Authority) -> Site {
    limited_site(authority, "")
}

fn limited_site(authority: &Authority, limits: &str) -> Site {
    let tls = format!(
        "[limits]\nrequests_per_second = 1000\n{limits}\n[tls]\ncertificate = {:?}\nkey = {:?}\n\
         clients = \"clients.pem\"\n{RULES}",
        data("certificate.pem"),
        data("key.pem")
    );
    let site = Site::new(&tls);
    std::fs::write(site.folder.path().join("clients.pem"), authority.certificate()).unwrap();
    site
}

fn client(engine: &Process, secret: Secret) -> Client {
    Client::new(&engine.url, secret, Some(&data("authority.pem"))).unwrap()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_certificate_is_a_role_and_a_scope_and_can_be_revoked() {
    let authority = Authority::new(OURS);
    let site = site(&authority);
    let engine = site.start();
    let (of_kim, of_robin, of_edge) = (folder(), folder(), folder());
    let name = "spiffe://example/people/kim";
    let kim = client(&engine, authority.sign(of_kim.path(), name, YEAR_S));
    assert_eq!(kim.status().unwrap().role, Role::Operator);
    let robin = client(&engine, authority.sign(of_robin.path(), "Robin.example", YEAR_S));
    assert_eq!(robin.status().unwrap().role, Role::Viewer);
    let safe = trimtab_fleet_client::NewSafe { services: vec![], why: "a test".to_owned() };
    let refused = robin.make_safe(&safe).unwrap_err();
    assert!(refused.to_string().contains("cert:robin.example is of role viewer"), "{refused}");
    assert!(kim.make_safe(&safe).unwrap().orders[0].who.starts_with("cert:spiffe://"));

    // An edge's has its services and subnets.
    let edge = client(&engine, authority.sign(of_edge.path(), "edge-17.edges.example", YEAR_S));
    let now = (now_ms() / 1000) as u64;
    let tell = |sequence, key: &str| edge.report(&batch(sequence, vec![report(key, now, 0, 5.0)]));
    assert_eq!(tell(1, "tv/203.0.113.0/24").unwrap().kept, 1);
    let elsewhere = tell(2, "tv/198.51.100.0/24").unwrap();
    assert!(elsewhere.refused_why.unwrap().contains("may speak for 203.0.113.0/24 alone"));
    let refused = tell(3, "vod/203.0.113.0/24").unwrap_err().to_string();
    assert!(refused.contains("may not speak for the service"), "{refused}");
    assert!(edge.status().unwrap_err().to_string().contains("role edge"));

    // It is listed as a token without a secret, and revoked as one; a token goes before it.
    let token = |name: &str| {
        let all = trimtab_engine::list_tokens(&site.config()).unwrap();
        all.into_iter().find(|token| token.name == name)
    };
    assert!(token("cert:edge-17.edges.example").is_some() && token("cert:robin.example").is_some());
    let name = "cert:edge-17.edges.example".to_owned();
    let rotate = serde_json::from_value(json!({ "name": name })).unwrap();
    let refused = trimtab_engine::rotate_token(&site.config(), &rotate).unwrap_err().to_string();
    assert!(refused.contains("renew its certificate"), "{refused}");
    trimtab_engine::revoke_token(&site.config(), &name).unwrap();
    until("that it is revoked", || {
        let said = tell(4, "tv/203.0.113.0/24").err()?.to_string();
        said.contains("unknown or revoked").then_some(())
    });
    assert_eq!(client(&engine, (&site.viewer).into()).status().unwrap().role, Role::Viewer);
}

#[test]
fn a_certificate_is_refused_with_the_reason_and_the_refusal_is_kept() {
    let authority = Authority::new(OURS);
    let site = site(&authority);
    let engine = site.start();
    let of = folder();
    let ask = |secret| client(&engine, secret).status().unwrap_err();
    // Another authority, and one that only has the name of ours.
    for name in ["another", OURS] {
        let stranger = ask(Authority::new(name).sign(of.path(), "robin.example", YEAR_S));
        let said = stranger.to_string();
        assert!(matches!(stranger, Error::Certificate { .. }), "{said}");
        assert!(said.contains("none of the authorities in the engine's [tls] clients"), "{said}");
    }
    let expired = ask(authority.sign(of.path(), "robin.example", -60));
    let said = expired.to_string();
    assert!(matches!(expired, Error::Certificate { .. }) && said.contains("has expired"), "{said}");
    for name in ["edge-17.example", "a.b.edges.example", "spiffe://example/people/kim/x"] {
        let unnamed = ask(authority.sign(of.path(), name, YEAR_S));
        let said = unnamed.to_string();
        let is_named = said.contains(&format!("whose names are {name}"));
        assert!(matches!(unnamed, Error::Certificate { .. }) && is_named, "{said}");
    }
    // Nothing is made of those that may not ask.
    let tokens = trimtab_engine::list_tokens(&site.config()).unwrap();
    assert!(tokens.iter().all(|token| !token.name.starts_with("cert:")), "{tokens:?}");
    let nobody = Client::new(&engine.url, "", Some(&data("authority.pem"))).unwrap();
    assert!(matches!(nobody.status(), Err(Error::Token { .. })));
    let operator = client(&engine, (&site.operator).into());
    until("the handshakes in the audit", || {
        let lines = operator.audit(Some(true), 50).ok()?.lines;
        let line = lines.into_iter().find(|line| line.subject == "TLS handshake")?;
        line.detail.starts_with("certificate, from 127.0.0.1: ").then_some(())
    });
    assert!(!engine.said("TLS from 127.0.0.1").is_empty());
}

#[test]
fn a_key_that_cannot_be_used_is_named() {
    let (authority, of, other) = (Authority::new(OURS), folder(), folder());
    let Secret::Certificate { certificate, .. } =
        authority.sign(of.path(), "robin.example", YEAR_S)
    else {
        panic!("a certificate")
    };
    let fails = |key: PathBuf| {
        let secret = Secret::Certificate { certificate: certificate.clone(), key };
        Client::new("https://127.0.0.1:1", secret, None).err().expect("it is refused").to_string()
    };
    let missing = fails(of.path().join("none.key"));
    assert!(missing.contains("none.key") && missing.contains("No such file"), "{missing}");
    assert!(fails(certificate.clone()).contains("no private key begins there"));
    authority.sign(other.path(), "robin.example", YEAR_S);
    let strange = fails(other.path().join("own.key"));
    assert!(strange.contains("it is not the key of the certificate in"), "{strange}");
}

#[test]
fn an_expiry_is_seen_before_it_comes_and_ends_a_connection_that_lasts() {
    let authority = Authority::new(OURS);
    let site = site(&authority);
    let engine = site.start();
    let (of_robin, of_edge) = (folder(), folder());
    let edge = Edge::start(&Options {
        engine: engine.url.clone(),
        token: authority.sign(of_edge.path(), "edge-1.edges.example", 3 * DAY_S + 60),
        authority: Some(data("authority.pem")),
        folder: of_edge.path().join("edge"),
    })
    .unwrap();
    let trouble = until("the edge's warning", || edge.status().trouble);
    assert!(trouble.contains("the certificate of this edge expires in 3 days"), "{trouble}");
    let operator = client(&engine, (&site.operator).into());
    let soon = operator.status().unwrap().expiring;
    assert_eq!(soon.len(), 1, "{soon:?}");
    assert_eq!(soon[0].name, "cert:edge-1.edges.example");
    let robin = client(&engine, authority.sign(of_robin.path(), "robin.example", 8));
    assert_eq!(robin.status().unwrap().role, Role::Viewer);
    let expired = until("the end of the certificate", || robin.status().err());
    assert!(matches!(expired, Error::Expired { .. }), "{expired:?}");
    assert!(expired.to_string().contains("the certificate of robin.example expired on"));
}

#[test]
fn an_edge_takes_a_certificate_that_is_renewed_and_an_engine_other_rules() {
    let authority = Authority::new(OURS);
    let site = site(&authority);
    let engine = site.start();
    let of = folder();
    let edge = Edge::start(&Options {
        engine: engine.url.clone(),
        token: authority.sign(of.path(), "edge-1.edges.example", YEAR_S),
        authority: Some(data("authority.pem")),
        folder: of.path().join("edge"),
    })
    .unwrap();
    let key: Key = "tv/203.0.113.0/24".parse().unwrap();
    until("a configuration", || edge.in_force(&key));
    // The next one is of another name, which shows that it is used.
    authority.sign(of.path(), "edge-2.edges.example", YEAR_S);
    let other: Key = "tv/203.0.113.128/25".parse().unwrap();
    until("another configuration", || edge.in_force(&other));
    let names = || {
        let tokens = trimtab_engine::list_tokens(&site.config()).unwrap();
        tokens.into_iter().map(|token| token.name).collect::<Vec<_>>()
    };
    until("the other name", || names().contains(&"cert:edge-2.edges.example".into()).then_some(()));
    assert!(names().contains(&"cert:edge-1.edges.example".into()));
    // The rules are read again with the services.
    let text = std::fs::read_to_string(site.config()).unwrap();
    std::fs::write(site.config(), text.replace("*.edges.example", "edge-3.edges.example")).unwrap();
    engine.hang_up();
    let third: Key = "tv/203.0.113.64/26".parse().unwrap();
    until("that it is refused", || {
        edge.in_force(&third);
        edge.status().trouble.filter(|trouble| trouble.contains("edge-2.edges.example"))
    });
    let operator = client(&engine, (&site.operator).into());
    until("a line of the audit", || {
        let lines = operator.audit(Some(true), 50).ok()?.lines;
        lines.into_iter().find(|line| line.detail.contains("edge-2.edges.example"))
    });
}

/// A question for a newer configuration than version 0 that waits for its answer, over TLS.
struct Poll(StreamOwned<ClientConnection, TcpStream>);

/// Who asks.
struct Asking {
    tls: Arc<ClientConfig>,
    /// A line of the head; empty where the certificate says who it is.
    token: String,
}

impl Asking {
    fn new(secret: &Secret) -> Self {
        let mut trusted = RootCertStore::empty();
        let certificates = |file: &Path| -> Vec<CertificateDer<'static>> {
            let all = CertificateDer::pem_file_iter(file).unwrap();
            all.map(Result::unwrap).collect()
        };
        certificates(&data("authority.pem")).into_iter().for_each(|one| trusted.add(one).unwrap());
        let builder = ClientConfig::builder().with_root_certificates(trusted);
        let (tls, token) = match secret {
            Secret::Certificate { certificate, key } => {
                let key = PrivateKeyDer::from_pem_file(key).unwrap();
                let own = builder.with_client_auth_cert(certificates(certificate), key);
                (own.unwrap(), String::new())
            }
            Secret::Text(token) => {
                (builder.with_no_client_auth(), format!("Authorization: Bearer {token}\r\n"))
            }
            Secret::File(_) => panic!("a token or a certificate"),
        };
        Self { tls: Arc::new(tls), token }
    }

    /// Begins to wait.
    fn poll(&self, engine: &Process) -> std::io::Result<Poll> {
        let address = engine.url.strip_prefix("https://").unwrap();
        let host = address.rsplit_once(':').unwrap().0.to_owned();
        let tls = ClientConnection::new(Arc::clone(&self.tls), ServerName::try_from(host).unwrap());
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(70)))?;
        let mut stream = StreamOwned::new(tls.unwrap(), stream);
        let have = json!([{ "service": "tv", "prefix": "203.0.113.0/24", "version": 0 }]);
        let body = json!({ "have": have, "wait_s": 60 }).to_string();
        let head = format!(
            "POST /v1/configurations HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n{}\
             Content-Length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        stream.write_all((head + &body).as_bytes())?;
        stream.flush()?;
        Ok(Poll(stream))
    }
}

impl Poll {
    /// Whether there is no answer yet, and the connection is open.
    fn waits(&mut self) -> bool {
        self.0.sock.set_nonblocking(true).unwrap();
        let got = self.0.read(&mut [0; 1]);
        self.0.sock.set_nonblocking(false).unwrap();
        got.is_err_and(|e| e.kind() == ErrorKind::WouldBlock)
    }

    fn answer(mut self) -> String {
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).expect("the engine ends it in good order");
        answer
    }
}

#[test]
fn many_that_wait_over_tls_are_answered_at_a_decision_and_one_that_hangs_up_frees_its_place() {
    const POLLS: usize = 200;
    let authority = Authority::new(OURS);
    let site = limited_site(&authority, &format!("connections_per_address = {POLLS}"));
    let engine = site.start();
    let of = folder();
    let by_certificate = authority.sign(of.path(), "edge-17.edges.example", YEAR_S);
    let kinds = [Asking::new(&by_certificate), Asking::new(&site.edge.as_str().into())];
    let poll = |n: usize| kinds[n % 2].poll(&engine);
    let mut polls: Vec<Poll> = (0..POLLS).map(|n| poll(n).expect("there is room")).collect();
    std::thread::sleep(Duration::from_secs(1));
    assert!(polls.iter_mut().all(Poll::waits), "nothing was decided");
    // They have every place of this address.
    let viewer = client(&engine, (&site.viewer).into());
    let refused = viewer.status().expect_err("all places are taken");
    assert!(matches!(refused, Error::NoEngine { .. }), "{refused:?}");
    // Half of them, of both kinds, hang up, and as many others get their places.
    polls.truncate(POLLS / 2);
    until("the first free place", || viewer.status().ok());
    until("half of the places, but for the viewer's and one for a report", || {
        while polls.len() < POLLS - 2 {
            polls.push(poll(polls.len()).ok()?);
        }
        Some(())
    });
    std::thread::sleep(Duration::from_millis(500));
    assert!(polls.iter_mut().all(Poll::waits), "nothing was decided");

    let edge = client(&engine, (&site.edge).into());
    let now = (now_ms() / 1000) as u64;
    edge.report(&batch(1, vec![report("tv/203.0.113.0/24", now, 0, 5.0)])).unwrap();
    let answers: Vec<(i64, String)> = polls
        .into_iter()
        .map(|poll| {
            let answer = poll.answer();
            (now_ms(), answer)
        })
        .collect();
    let name = Name { service: "tv".to_owned(), prefix: "203.0.113.0/24".to_owned() };
    let decided = viewer.aggregate(&name).unwrap();
    assert_eq!((decided.version, answers.len()), (1, POLLS - 2));
    for (_, answer) in &answers {
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"version\":1"),
            "{answer}"
        );
    }
    let last_ms = answers.iter().map(|(at_ms, _)| at_ms - decided.changed_ms).max().unwrap();
    println!("{} answers within {last_ms} ms of the decision", answers.len());
    assert!(last_ms <= 1000, "the last one is {last_ms} ms after the decision");
    // Those that were answered have none of the places any more.
    let mut again = Vec::new();
    until("their places", || {
        while again.len() < POLLS - 2 {
            again.push(poll(again.len()).ok()?);
        }
        Some(())
    });
}

//! Edges and people that ask with a certificate instead of a token: what it lets them do, and each
//! way in which it is refused.

mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{Process, Site, batch, now_ms, report, until};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType};
use serde_json::json;
use trimtab_fleet_client::edge::{Edge, Key, Options};
use trimtab_fleet_client::{Client, Error, Role, Secret};

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
    let tls = format!(
        "[limits]\nrequests_per_second = 1000\n[tls]\ncertificate = {:?}\nkey = {:?}\n\
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

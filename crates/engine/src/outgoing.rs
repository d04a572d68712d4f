//! What asks other servers by HTTP: receivers of events, and the collector of traces.

use std::path::Path;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// An agent that waits so long for an answer, and follows no redirection: what it sends is for one
/// server. `authority` is a file with those who vouch for that; none: those of the web.
pub(crate) fn agent(authority: Option<&Path>, within: Duration) -> Result<Agent, String> {
    let mut tls = TlsConfig::builder();
    if let Some(file) = authority {
        let wrong = |why: String| format!("authority {}: {why}", file.display());
        let bytes = std::fs::read(file).map_err(|e| wrong(e.to_string()))?;
        let items: Result<Vec<PemItem<'static>>, _> = parse_pem(&bytes).collect();
        let items = items.map_err(|e| wrong(e.to_string()))?.into_iter();
        let all: Vec<Certificate<'static>> = items
            .filter_map(|item| match item {
                PemItem::Certificate(one) => Some(one),
                _ => None,
            })
            .collect();
        if all.is_empty() {
            return Err(wrong("no certificate begins there".to_owned()));
        }
        tls = tls.root_certs(RootCerts::new_with_certs(&all));
    }
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_global(Some(within));
    Ok(config.tls_config(tls.build()).build().into())
}

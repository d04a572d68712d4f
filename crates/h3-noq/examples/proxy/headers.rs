//! Header fields that are for one hop only.

use std::net::SocketAddr;

use http::header::{
    CONNECTION, HeaderName, HeaderValue, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE, VIA,
};
use http::{HeaderMap, Uri};

/// Fields that concern a connection (RFC 9110 §7.6.1). HTTP/3 has none of them (RFC 9114 §4.2).
const OF_A_HOP: [HeaderName; 7] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Drops what concerns the connection by which the fields came, also what `Connection` names.
pub(crate) fn drop_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_A_HOP) {
        headers.remove(name);
    }
}

/// The fields of a request as the origin gets them.
pub(crate) fn forward(headers: &mut HeaderMap, uri: &Uri, peer: SocketAddr) {
    drop_hop(headers);
    headers.remove(PROXY_AUTHORIZATION);
    if let Some(host) = uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
        headers.insert(http::header::HOST, host);
    }
    // Other gateways that the request has passed are in there already (RFC 9110 §7.6.3).
    headers.append(VIA, HeaderValue::from_static("3.0 trimtab"));
    let client = HeaderValue::from_str(&peer.ip().to_canonical().to_string());
    headers.append("x-forwarded-for", client.expect("an address is of letters and digits"));
    headers.insert("x-forwarded-proto", HeaderValue::from_static("https"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |&(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        fields.iter().map(field).collect()
    }

    #[test]
    fn what_concerns_one_hop_is_dropped_with_what_it_names() {
        let mut response = headers(&[
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("content-type", "text/plain"),
        ]);
        drop_hop(&mut response);
        assert_eq!(response, headers(&[("content-type", "text/plain")]));
    }

    #[test]
    fn the_origin_gets_the_clients_address() {
        let mut request = headers(&[("proxy-authorization", "x"), ("via", "1.1 other")]);
        let peer = "[::ffff:192.0.2.7]:5".parse().unwrap();
        forward(&mut request, &Uri::from_static("https://example.org:4433/a"), peer);
        let expected = headers(&[
            ("via", "1.1 other"),
            ("via", "3.0 trimtab"),
            ("host", "example.org:4433"),
            ("x-forwarded-for", "192.0.2.7"),
            ("x-forwarded-proto", "https"),
        ]);
        assert_eq!(request, expected);
    }
}

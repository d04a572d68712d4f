//! The line of metrics of a connection that has ended.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use trimtab_noq::Metrics;

/// A connection that has ended.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) peer: SocketAddr,
    pub(crate) lasted: Duration,
    /// Responses that the client has in full.
    pub(crate) responses: u64,
    /// The path as it was last.
    pub(crate) metrics: Metrics,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, lasted, responses, metrics } = self;
        let (sent, lost) = (metrics.sent.get(), metrics.lost.get());
        write!(
            f,
            "{peer} scheme={} algorithm={} seconds={:.2} responses={responses} sent={sent} \
             lost={:.2}%",
            metrics.scheme,
            metrics.algorithm,
            lasted.as_secs_f64(),
            100.0 * lost as f64 / sent.max(1) as f64,
        )?;
        if let (Some(srtt), Some(min)) = (metrics.srtt, metrics.min_rtt) {
            write!(
                f,
                " srtt_ms={:.2} min_rtt_ms={:.2}",
                srtt.as_millis_f64(),
                min.as_millis_f64()
            )?;
        }
        if let Some(rate) = metrics.delivery_rate {
            write!(f, " delivery_mbps={:.2}", rate.mbps())?;
        }
        if let Some(preference) = metrics.insight.preference {
            write!(f, " lambda={:.2}", preference.lambda)?;
        }
        write!(f, " window={} switches={}", metrics.window.get(), metrics.switches)
    }
}

//! Drawn paths: recordings of a part of the split, with what the recordings do not say.

use std::path::Path;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use trimtab_apps::{App, BulkConfig, WebConfig};
use trimtab_lab::scenario::Part;
use trimtab_net::{Capacity, LinkConfig, LossConfig, QueueConfig, Trace};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_units::{Bytes, Duration, Time};

/// One drawn path.
pub(crate) struct Drawn {
    /// Number of the recording.
    pub(crate) recording: usize,
    pub(crate) capacity: Capacity,
    rtt: Duration,
    /// In bandwidth-delay products.
    buffer: f64,
    loss: f64,
    /// Whether a bulk flow of CUBIC is next to the own flow.
    rival: bool,
    /// When the own flow is to switch.
    pub(crate) at: Time,
    seed: u64,
}

impl Drawn {
    /// The own flow is the first.
    pub(crate) fn world(&self, control: Control, app: &str) -> World {
        let buffer = (self.capacity.mean_rate() * self.rtt).mul_f64(self.buffer);
        let loss = LossConfig::Independent(self.loss);
        let link = LinkConfig::new(self.capacity.clone())
            .queue(QueueConfig::drop_tail_bytes(buffer.max(Bytes::new(3000))))
            .loss(if self.loss > 0.0 { loss } else { LossConfig::None });
        let bulk = || App::bulk(&BulkConfig::default());
        let web = WebConfig { seed: self.seed, clicks: None, ..WebConfig::default() };
        let app = if app == "web" { App::web(&web) } else { bulk() };
        let own = FlowConfig::new(control, Transport::quic(), app, self.rtt);
        let mut flows = vec![FlowConfig { seed: self.seed, ..own }];
        if self.rival
            && let Ok(spec) = "cubic".parse()
        {
            let cubic = Control::Algorithm { spec, steerer: None };
            flows.push(FlowConfig::new(cubic, Transport::quic(), bulk(), self.rtt));
        }
        World::new(&WorldConfig { links: vec![(link, self.seed)], flows })
    }
}

/// So many paths of each recording of a part. The recordings lie in `$TRIMTAB_SHARED`, or next to
/// the project.
pub(crate) fn draw(part: Part, each: usize) -> Result<Vec<Drawn>, Box<dyn std::error::Error>> {
    let shared = std::env::var_os("TRIMTAB_SHARED").unwrap_or_else(|| "../shared".into());
    let mut random = Pcg64Mcg::seed_from_u64(22);
    let mut drawn = Vec::new();
    let kinds = part.recordings().into_iter();
    let files = kinds.flat_map(|(kind, names)| {
        names.into_iter().map(move |name| format!("traces/{kind}/{name}.trace.gz"))
    });
    for (recording, file) in files.enumerate() {
        let trace = Arc::new(Trace::load(&Path::new(&shared).join(file))?);
        let length_ms = trace.period().as_millis().max(1);
        for _ in 0..each {
            let mut capacity = Capacity::trace(trace.clone());
            let begins = Duration::from_millis(random.random_range(0..length_ms));
            if let Capacity::Trace { offset, .. } = &mut capacity {
                *offset = begins;
            }
            drawn.push(Drawn {
                recording,
                capacity,
                rtt: Duration::from_millis([20, 60, 120][random.random_range(0..3)]),
                buffer: [0.5, 1.0, 4.0][random.random_range(0..3)],
                loss: [0.0, 0.005][random.random_range(0..2)],
                rival: random.random_range(0..2) == 1,
                at: Time::from_millis(random.random_range(8000..16_000)),
                seed: random.random_range(1..1_000_000),
            });
        }
    }
    Ok(drawn)
}

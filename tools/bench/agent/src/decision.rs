//! The time of one report and of one decision of Mortise, without anything around it.

use std::time::Instant;

use trimtab_cc::Phase;
use trimtab_qoe::{Factors, Model};
use trimtab_steer::{Action, KnobValues, Mortise, MortiseConfig, Report, Responses, Steer};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::Figure;

const CONNECTIONS: usize = 200;
const REPORTS: usize = 500;

/// A connection whose queue follows δ, over a link whose capacity drifts.
struct Path {
    steering: Mortise,
    delta: f64,
    now: Time,
    step: u64,
}

impl Path {
    fn report(&mut self) -> Report {
        self.step += 1;
        // 6 to 24 Mbit/s, up and down with a period that no two connections share.
        let swing = ((self.step % 97) as f64 / 97.0 - 0.5).abs() * 2.0;
        let rate = Rate::from_mbps(6.0 + 18.0 * swing);
        let mss = Bytes::new(1448);
        let queue = mss.mul_f64(1.25 / self.delta) / rate;
        let rtt = Duration::from_millis(40) + queue;
        self.now += rtt;
        let sent = rate * rtt;
        Report {
            now: self.now,
            interval: rtt,
            algorithm: "copa",
            sent,
            acked: sent,
            lost: Bytes::ZERO,
            busy: rtt,
            rtt_samples: 10,
            rtt_variance: 0.0,
            rtt_mean: Some(rtt),
            rtt_min: Some(Duration::from_millis(40)),
            rtt_max: Some(rtt + queue),
            rtts: None,
            srtt: rtt,
            min_rtt: Duration::from_millis(40),
            delivery_rate: Some(rate),
            delivery_rate_any: Some(rate),
            window: sent,
            inflight: sent,
            mss,
            phase: Phase::Steady,
            knobs: KnobValues::NONE,
            states: None,
            responses: Responses::default(),
            factors: Factors::new(),
        }
    }
}

/// Over many connections, taken one after the other as the agent does, so that each finds the caches cold. The
/// median, since somebody else's turn on a shared machine is a hundred times as long as a decision.
pub(crate) fn figures() -> Vec<Figure> {
    let model = Model::parse("download", &[]).expect("a built-in model");
    let mut paths: Vec<Path> = (0..CONNECTIONS)
        .map(|i| {
            let mut config = MortiseConfig::new(model.clone());
            config.factors = config.factors.with_request(Bytes::new(1_000_000));
            let steering = Mortise::new(config);
            let delta = steering.applied_delta();
            Path { steering, delta, now: Time::ZERO, step: i as u64 * 31 }
        })
        .collect();
    let mut all = Vec::with_capacity(CONNECTIONS * REPORTS);
    let mut decided = Vec::new();
    for _ in 0..REPORTS {
        for path in &mut paths {
            let report = path.report();
            let start = Instant::now();
            let action = path.steering.on_report(&report);
            let took = start.elapsed().as_secs_f64() * 1e6;
            all.push(took);
            if let Some(Action::Set(values)) = action
                && let Some(delta) = values.get("delta")
            {
                path.delta = delta;
                decided.push(took);
            }
        }
    }
    decided.sort_by(f64::total_cmp);
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len().max(1) as f64;
    let of_decided = |share: usize| decided.get(decided.len() * share / 100).copied();
    let figure = |name, value: Option<f64>, limit| Figure {
        name,
        value: value.unwrap_or_default(),
        unit: "us",
        limit,
    };
    vec![
        figure("a report, mean", Some(mean(&all)), None),
        figure("a report with a decision, median", of_decided(50), Some(10.0)),
        figure("a report with a decision, 90th percentile", of_decided(90), None),
    ]
}

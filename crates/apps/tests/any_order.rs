//! Every application under events in any order: late, twice, for strangers, even back in time. None
//! of it may panic or break the books, and a copy goes on as its original.

use proptest::prelude::*;
use trimtab_apps::{
    Abr, App, Application, Bola, BulkConfig, CdnDistribution, Command, DownloadConfig, Live,
    LiveConfig, Outcome, RequestId, VodConfig, WebConfig, Workload,
};
use trimtab_units::{Bytes, Duration, Time};

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Time passes (or, rarely, goes back), and the client is polled until it wants nothing.
    Poll,
    /// The oldest request, or a stranger, gets bytes.
    FirstByte(u32),
    Bytes(u32, u64),
    Complete(u32),
    /// The next timer is obeyed.
    Timer,
}

fn ops() -> impl Strategy<Value = Vec<(i64, Op)>> {
    let op = prop_oneof![
        2 => Just(Op::Poll),
        2 => Just(Op::Timer),
        1 => (0u32..12).prop_map(Op::FirstByte),
        1 => (0u32..12, 0u64..5_000_000).prop_map(|(id, n)| Op::Bytes(id, n)),
        3 => (0u32..12).prop_map(Op::Complete),
    ];
    let step_ms = prop_oneof![9 => 0i64..5000, 1 => -3000i64..0];
    prop::collection::vec((step_ms, op), 1..120)
}

fn apps(seed: u64) -> Vec<App> {
    let workload = Workload::draw(&CdnDistribution::default(), Duration::from_secs(30), seed);
    let vod = VodConfig { seed, size_variation: 0.3, ..VodConfig::default() };
    let bola = VodConfig { abr: Abr::Bola(Bola::default()), repeats: true, ..vod.clone() };
    vec![
        App::bulk(&BulkConfig::default()),
        App::download(DownloadConfig::new(workload)),
        App::vod(vod).unwrap(),
        App::vod(bola).unwrap(),
        App::web(&WebConfig { seed, length: None, ..WebConfig::default() }),
        Live::new(LiveConfig { seed, ..LiveConfig::default() }).unwrap().into(),
    ]
}

/// What a carrier remembers.
#[derive(Clone)]
struct Run {
    app: App,
    now: Time,
    /// Sizes by request, in the order of their names.
    sizes: Vec<Bytes>,
    complete: Vec<bool>,
}

impl Run {
    fn new(app: App) -> Self {
        Self { app, now: Time::ZERO, sizes: Vec::new(), complete: Vec::new() }
    }

    fn step(&mut self, step_ms: i64, op: Op) {
        let by = Duration::from_millis(step_ms.unsigned_abs());
        self.now = if step_ms < 0 { self.now - by } else { self.now + by };
        // Requests are hit from the newest backwards, so that most events mean one in flight.
        let id = |back: u32| RequestId((self.sizes.len() as u32).wrapping_sub(back));
        match op {
            Op::Poll => {}
            Op::Timer => self.now = self.app.next_timer().unwrap_or(self.now),
            Op::FirstByte(back) => self.app.on_first_byte(self.now, id(back)),
            Op::Bytes(back, n) => self.app.on_bytes(self.now, id(back), Bytes::new(n)),
            Op::Complete(back) => {
                let id = id(back);
                self.app.on_complete(self.now, id);
                if let Some(complete) = self.complete.get_mut(id.0 as usize) {
                    *complete = true;
                }
            }
        }
        if matches!(op, Op::Poll | Op::Timer) {
            while let Some(Command::Request { id, size, upload }) = self.app.poll(self.now) {
                assert_eq!(id.0 as usize, self.sizes.len(), "names count up");
                assert!(!size.is_zero() && !upload.is_zero());
                self.sizes.push(size);
                self.complete.push(false);
                assert!(self.sizes.len() < 200_000, "polling ends");
            }
        }
    }

    fn check(&self) {
        let f = self.app.factors(self.now);
        let open = self.sizes.iter().zip(&self.complete).filter(|(_, done)| !**done);
        assert_eq!(f.outstanding_requests as usize, open.clone().count());
        assert_eq!(f.request_size, open.clone().next().map(|(size, _)| *size));
        assert!(f.outstanding <= open.map(|(size, _)| *size).sum());
        match self.app.outcome(self.now) {
            Outcome::Requests(records) => {
                assert_eq!(records.len(), self.sizes.len());
                for (record, done) in records.iter().zip(&self.complete) {
                    assert_eq!(record.completed_at.is_some(), *done);
                }
            }
            Outcome::Video(record) => {
                assert!(f.buffer.unwrap() <= VodConfig::default().buffer_max);
                let stalls: Duration = record.chunks.iter().map(|c| c.stall).sum();
                // A stall that a late poll leaves without a chunk in download waits for the next one.
                let in_download = record.chunks.last().is_some_and(|c| c.completed_at.is_none());
                assert!(stalls == record.stall_time || stalls < record.stall_time && !in_download);
            }
            Outcome::Call(_) | Outcome::Endless => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]
    #[test]
    fn nothing_breaks_the_books(seed in 0u64..1000, ops in ops(), fork_at in 0usize..120) {
        for app in apps(seed) {
            let mut run = Run::new(app);
            let mut fork = None;
            for (i, &(step_ms, op)) in ops.iter().enumerate() {
                if i == fork_at {
                    fork = Some(run.clone());
                }
                run.step(step_ms, op);
                run.check();
            }
            if let Some(mut fork) = fork {
                ops[fork_at..].iter().for_each(|&(step_ms, op)| fork.step(step_ms, op));
                prop_assert_eq!(fork.app.outcome(fork.now), run.app.outcome(run.now));
                prop_assert_eq!(fork.app.next_timer(), run.app.next_timer());
            }
        }
    }
}

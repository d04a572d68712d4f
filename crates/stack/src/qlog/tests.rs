use std::sync::{Mutex, Once};
use std::time::{Duration as Std, Instant};

use log::{LevelFilter, Log, Metadata, Record};
use serde_json::Value;
use trimtab_units::Bytes;

use super::*;
use crate::path::Path;
use crate::paths::lock;
use crate::tests::{Config, next};

/// Where a test looks for what was written.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    /// The records, by the framing of RFC 7464.
    fn records(&self) -> Vec<Value> {
        let bytes = lock(&self.0);
        let text = std::str::from_utf8(&bytes).unwrap();
        let mut texts = text.split('\x1E');
        assert_eq!(texts.next(), Some(""));
        texts.map(|text| serde_json::from_str(text.strip_suffix('\n').unwrap()).unwrap()).collect()
    }
}

/// A path that sends ten packets a round trip of 40 ms, for so many.
fn drive(path: &mut Path, epoch: Instant, rounds: u64) {
    let at = |ms| epoch + Std::from_millis(ms);
    for round in 0..rounds {
        let numbers = round * 10..round * 10 + 10;
        numbers.clone().for_each(|n| path.on_sent(at(round * 40), Bytes::new(1200), n));
        for number in numbers {
            path.on_acked(at(round * 40 + 40), at(round * 40), number, Duration::from_millis(40));
        }
        path.on_end_acks(at(round * 40 + 40), false);
        path.window();
    }
}

fn logged(scheme: &str, qlog: &Qlog, epoch: Instant) -> Path {
    let config = Config::new(scheme).unwrap().with_clock(epoch).with_qlog(qlog.clone());
    Path::new(&next(&config), 0, epoch, 1200)
}

#[test]
fn a_log_has_a_header_the_beginning_and_what_changes() {
    let kept = Kept::default();
    let to = kept.clone();
    let qlog = Qlog::to(move |_| Ok(Box::new(to.clone()))).unwrap().at_server().named("a/b");
    let epoch = Instant::now();
    let mut path = logged("cubic", &qlog, epoch);
    drive(&mut path, epoch, 5);
    drop(path);
    qlog.flush();
    let records = kept.records();
    let header = &records[0];
    assert_eq!(header["qlog_version"], "0.3");
    assert_eq!(header["qlog_format"], "JSON-SEQ");
    assert_eq!(header["trace"]["vantage_point"]["type"], "server");
    assert_eq!(header["trace"]["common_fields"]["group_id"], "a_b");
    assert_eq!(header["trace"]["common_fields"]["reference_time"], 0.0);
    let names: Vec<_> = records[1..5].iter().map(|record| &record["name"]).collect();
    let expected = [
        "recovery:parameters_set",
        "trimtab:scheme_set",
        "recovery:congestion_state_updated",
        "recovery:metrics_updated",
    ];
    assert_eq!(names, expected);
    let parameters = &records[1]["data"];
    assert_eq!(
        (&parameters["max_datagram_size"], &parameters["scheme"]),
        (&1200.into(), &"cubic".into())
    );
    assert_eq!(parameters["initial_congestion_window"], 12_000);
    // RFC 9002 §5.3: the first sample, and a half of it.
    let first = &records[4];
    assert_eq!((&first["time"], &first["data"]["latest_rtt"]), (&40.0.into(), &40.0.into()));
    assert_eq!(first["data"]["rtt_variance"], 20.0);
    // Once a round trip, without what stays as it is.
    let metrics = records.iter().filter(|record| record["name"] == "recovery:metrics_updated");
    let metrics: Vec<_> = metrics.collect();
    assert!((4..=6).contains(&metrics.len()), "{metrics:#?}");
    assert!(metrics[1..].iter().all(|record| record["data"].get("min_rtt").is_none()));
    assert!(metrics[1]["data"]["congestion_window"].as_u64() > Some(12_000));
}

#[test]
fn losses_and_marks_change_the_state() {
    let kept = Kept::default();
    let to = kept.clone();
    let qlog = Qlog::to(move |_| Ok(Box::new(to.clone()))).unwrap();
    let epoch = Instant::now();
    let mut path = logged("cubic", &qlog, epoch);
    drive(&mut path, epoch, 3);
    let at = |ms| epoch + Std::from_millis(ms);
    path.on_sent(at(120), Bytes::new(1200), 100);
    path.on_packet_lost(at(160), 100);
    path.on_losses(at(160), false);
    path.on_spurious_loss();
    drop(path);
    let mut path = logged("cubic", &qlog, epoch);
    drive(&mut path, epoch, 3);
    path.on_marked(at(130), at(80));
    drop(path);
    // A stack that tells no packets.
    let mut path = logged("cubic", &qlog, epoch);
    path.on_bytes_sent(at(10), Bytes::new(6000));
    path.on_bytes_lost(at(50), at(10), Bytes::new(7000));
    drop(path);
    qlog.flush();
    let records = kept.records();
    let of = |name: &str| records.iter().find(|record| record["name"] == name).unwrap();
    assert_eq!(of("recovery:packet_lost")["data"]["header"]["packet_number"], 100);
    assert_eq!(of("trimtab:spurious_loss")["time"], 160.0);
    assert_eq!(of("trimtab:bytes_lost")["data"]["bytes"], 6000, "of those that were sent");
    let states = records.iter().filter(|r| r["name"] == "recovery:congestion_state_updated");
    let states: Vec<_> = states
        .map(|state| {
            let text = |field: &str| state["data"][field].as_str().unwrap_or("").to_owned();
            (text("old"), text("new"), text("trigger"))
        })
        .collect();
    let text = |old: &str, new: &str, trigger: &str| (old.into(), new.into(), trigger.into());
    assert!(states.contains(&text("slow_start", "recovery", "")), "{states:?}");
    assert!(states.contains(&text("slow_start", "recovery", "ecn")), "{states:?}");
}

/// What the crate `log` got at the level of errors.
static ERRORS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Errors;

impl Log for Errors {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        lock(&ERRORS).push(record.args().to_string());
    }

    fn flush(&self) {}
}

/// The connection goes on, and one error is logged.
#[test]
fn a_full_disk_ends_the_log_and_nothing_else() {
    static LOGGER: Once = Once::new();
    LOGGER.call_once(|| log::set_logger(&Errors).unwrap());
    log::set_max_level(LevelFilter::Error);
    let full = || OpenOptions::new().write(true).open("/dev/full");
    let qlog = Qlog::to(move |_| Ok(Box::new(full()?))).unwrap().named("full-disk");
    let epoch = Instant::now();
    let mut path = logged("cubic", &qlog, epoch);
    for _ in 0..3 {
        drive(&mut path, epoch, 100);
        qlog.flush();
    }
    assert!(path.window() > Bytes::new(12_000), "the path goes on");
    drop(path);
    qlog.flush();
    let errors = lock(&ERRORS);
    let errors: Vec<_> = errors.iter().filter(|error| error.contains("full-disk")).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("No space left") && errors[0].contains("goes on"), "{errors:?}");
}

#[test]
fn files_have_names_of_their_own() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("made");
    let qlog = Qlog::in_folder(&folder).unwrap();
    let epoch = Instant::now();
    drop((logged("cubic", &qlog, epoch), logged("copa", &qlog.named("x"), epoch)));
    qlog.flush();
    let files = fs::read_dir(&folder).unwrap();
    let mut names: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names.len(), 2);
    let begin = |name: &str| format!("{name}-{}-0-", process::id());
    assert!(names[0].starts_with(&begin("trimtab")) && names[1].starts_with(&begin("x")));
    assert!(names.iter().all(|name| name.ends_with(".sqlog")), "{names:?}");
}

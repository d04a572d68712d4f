use trimtab_net::Capacity;
use trimtab_units::Rate;

use super::*;

fn link() -> LinkConfig {
    LinkConfig::new(Capacity::Constant(Rate::from_mbps(12.0)))
}

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn delivered(direction: Direction, at: u64) -> Entry {
    Entry::Delivered {
        direction,
        size: Bytes::new(1500),
        arrived: ms(at),
        departed: Time::from_micros(1000 * at + 2500),
        due: ms(at + 12),
        written: Time::from_micros(1000 * at + 12_125),
    }
}

fn arrived(direction: Direction, at: u64, dropped: Option<DropCause>) -> Entry {
    Entry::Arrived { direction, size: Bytes::new(1500), at: ms(at), dropped }
}

/// The lines of a file behind those of its head.
fn lines(folder: &Path, file: &str) -> Vec<String> {
    let text = fs::read_to_string(folder.join(file)).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn each_packet_has_one_row_with_its_times() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("made/here");
    let (mut sender, writer) = LogWriter::start(&folder, &link(), &link()).unwrap();
    sender.send(arrived(Direction::Down, 5, None));
    sender.send(delivered(Direction::Down, 5));
    for cause in [DropCause::RandomLoss, DropCause::Policer, DropCause::QueueFull] {
        sender.send(arrived(Direction::Up, 20, Some(cause)));
    }
    sender.send(Entry::Dropped {
        direction: Direction::Down,
        size: Bytes::new(700),
        arrived: ms(30),
        at: Time::from_micros(42_750),
        cause: DropCause::Aqm,
    });
    drop(sender);
    writer.finish().unwrap();
    let rows = lines(&folder, "packets.csv");
    assert_eq!(
        rows,
        [
            COLUMNS,
            "down,delivered,1500,5.000000,7.500000,17.125000,2.500000,12.125000,0.125000",
            "up,random-loss,1500,20.000000,,,,,",
            "up,policer,1500,20.000000,,,,,",
            "up,queue-full,1500,20.000000,,,,,",
            "down,aqm,700,30.000000,,,12.750000,,",
        ]
    );
    let columns = COLUMNS.matches(',').count();
    assert!(rows.iter().all(|row| row.matches(',').count() == columns), "{rows:?}");
    // Each direction has its own log, without what other programs lose.
    assert_eq!(lines(&folder, "down.log"), ["5 + 1500", "7 - 1500 2", "42 d 1 700"]);
    assert_eq!(lines(&folder, "up.log"), ["20 + 1500", "20 d 1 1500"]);
}

/// More than one batch, some of which is on its way when the sender goes.
#[test]
fn no_row_is_lost_between_batches() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sender, writer) = LogWriter::start(folder.path(), &link(), &link()).unwrap();
    let count = 2 * BATCH as u64 + 17;
    for at in 0..count {
        sender.send(delivered(Direction::Down, at));
    }
    drop(sender);
    writer.finish().unwrap();
    let rows = lines(folder.path(), "packets.csv");
    assert_eq!(rows.len() as u64, count + 1);
    let times: Vec<f64> =
        rows[1..].iter().map(|row| row.split(',').nth(3).unwrap().parse().unwrap()).collect();
    assert!((0..count).map(|at| at as f64).eq(times), "in their order");
    assert_eq!(lines(folder.path(), "down.log").len() as u64, count);
}

#[test]
fn what_waits_is_handed_over_before_a_sleep_when_it_is_old() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sender, writer) = LogWriter::start(folder.path(), &link(), &link()).unwrap();
    sender.send(delivered(Direction::Down, 1));
    sender.flush_before_sleep(ms(100));
    assert_eq!(sender.entries.len(), 1, "it is not older than 100 ms");
    sender.flush_before_sleep(ms(101));
    assert_eq!(sender.entries.len(), 0);
    sender.send(delivered(Direction::Down, 120));
    sender.flush_before_sleep(ms(190));
    assert_eq!(sender.entries.len(), 1, "the last time was 89 ms ago");
    drop(sender);
    writer.finish().unwrap();
    assert_eq!(lines(folder.path(), "packets.csv").len(), 3);
}

#[test]
fn a_log_that_cannot_be_written_is_an_error_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = LogWriter::start(&file, &link(), &link()).err().expect("it is a file");
    let message = error.to_string();
    assert!(matches!(error, EmuError::Log { path, .. } if path == file), "{message}");
    assert!(message.contains("choose another place with --log"), "{message}");
    // A folder is where a file should be.
    for name in ["packets.csv", "up.log"] {
        let place = folder.path().join(format!("for-{name}"));
        fs::create_dir_all(place.join(name)).unwrap();
        let message = LogWriter::start(&place, &link(), &link()).err().unwrap().to_string();
        assert!(message.contains(name), "{message}");
    }
}

/// `/dev/full` takes nothing; the thread that carries packets goes on all the same.
#[test]
fn a_disk_that_is_full_is_an_error_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("packets.csv")).unwrap();
    let (mut sender, writer) = LogWriter::start(folder.path(), &link(), &link()).unwrap();
    for at in 0..3 * BATCH as u64 {
        sender.send(delivered(Direction::Down, at));
    }
    drop(sender);
    let message = writer.finish().unwrap_err().to_string();
    assert!(message.contains("packets.csv"), "{message}");
}

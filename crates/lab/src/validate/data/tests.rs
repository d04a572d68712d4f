//! Folders of measurements: what is read, and what is said of one that is no such folder.

use std::io::Write as _;

use super::*;

const BULK: &str = "run,cca,rate_mbps,rtt_ms,buffer_packets,loss,duration_s,window_from_s,\
    window_to_s,flow_starts_s,goodput_mbps,queue_mean_ms,retransmit_pct\n\
    bulk-cubic-r12-1,cubic,12,20,60,0.01,30,5,30,0.25,11.4,3.5,1.2\n\
    bulk-cubic+bbr-r48-2,cubic+bbr,48,150,600,0,60,10,60,0.5;2.5,46,80,0\n";
const SESSIONS: &str = "trace,cca,buffer_packets,repeat,trace_ms_at_first_request,retransmit_pct,\
    queue_mean_ms,duration_s\nbus,bbr,100,1,250,0.5,12,40\nbus,bbr,100,2,500,0.7,14,41\n";
const REQUESTS: &str = "trace,cca,buffer_packets,repeat,size_bytes,t_send_ms,rct_ms\n\
    bus,bbr,100,2,2000,10,300\nbus,bbr,100,1,1000,0,200\nbus,bbr,100,2,3000,900,400\n\
    tram,bbr,100,1,9999,0,1\n";

/// A folder with these files, the compressed ones compressed.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = File::create(&path).unwrap();
        if name.ends_with(".gz") {
            let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            gz.write_all(text.as_bytes()).unwrap();
            gz.finish().unwrap();
        } else {
            file.write_all(text.as_bytes()).unwrap();
        }
    }
    folder
}

#[test]
fn bulk_runs_have_their_columns_whatever_the_order() {
    let runs = bulk_runs(folder(&[("bulk.csv", BULK)]).path()).unwrap();
    let [one, two] = &runs[..] else { panic!("two runs") };
    assert_eq!((one.cell(), two.cell()), ("bulk-cubic-r12", "bulk-cubic+bbr-r48"));
    assert_eq!((one.rate_mbps, one.rtt_ms, one.buffer_packets), (12, 20, 60));
    assert_eq!((one.loss, one.duration_s, one.window_s), (0.01, 30.0, (5.0, 30.0)));
    assert_eq!((one.goodput_mbps, one.queue_mean_ms, one.retransmit_pct), (11.4, 3.5, 1.2));
    assert_eq!(two.ccas, ["cubic", "bbr"]);
    assert_eq!(two.flow_starts_s, [0.5, 2.5]);
    // The same table from right to left.
    let turned: Vec<String> =
        BULK.lines().map(|l| l.split(',').rev().collect::<Vec<_>>().join(",")).collect();
    let turned = bulk_runs(folder(&[("bulk.csv", &turned.join("\r\n"))]).path()).unwrap();
    assert_eq!(format!("{turned:?}"), format!("{runs:?}"));
}

#[test]
fn requests_go_to_the_session_that_they_belong_to() {
    let files = [("download-sessions.csv", SESSIONS), ("download.csv", REQUESTS)];
    let sessions = sessions(folder(&files).path()).unwrap();
    let [one, two] = &sessions[..] else { panic!("two sessions") };
    assert_eq!((one.trace_ms, two.trace_ms), (250.0, 500.0));
    assert_eq!((one.retransmit_pct, one.queue_mean_ms, one.duration_s), (0.5, 12.0, 40.0));
    let sizes = |s: &Session| s.requests.iter().map(|r| r.size_bytes).collect::<Vec<_>>();
    assert_eq!((sizes(one), sizes(two)), (vec![1000], vec![2000, 3000]));
    assert_eq!((two.requests[1].sent_ms, two.requests[1].rct_ms), (900.0, 400.0));
}

#[test]
fn a_series_is_read_where_there_is_one() {
    let text = "time_s,goodput_mbps,retransmits,queue_drops\n0.05,11.5,3,2\n0.1,12,5,0\n";
    let folder = folder(&[("bulk.csv", BULK), ("bulk-series/bulk-cubic-r12-1.csv.gz", text)]);
    let runs = bulk_runs(folder.path()).unwrap();
    let samples = series(folder.path(), &runs[0]).unwrap().unwrap();
    assert_eq!((samples[0].time_s, samples[0].goodput_mbps), (0.05, 11.5));
    assert_eq!((samples[1].retransmits, samples[1].queue_drops), (5, 0));
    assert!(series(folder.path(), &runs[1]).unwrap().is_none());
}

#[test]
fn mistakes_name_the_file_the_line_and_the_column() {
    let e = |from: &str, to: &str| {
        assert!(BULK.contains(from), "{from}");
        let folder = folder(&[("bulk.csv", &BULK.replacen(from, to, 1))]);
        bulk_runs(folder.path()).unwrap_err().to_string()
    };
    for (from, to, words) in [
        (
            "rtt_ms",
            "rtt",
            "bulk.csv has no column \"rtt_ms\"; use the files as they were published",
        ),
        ("11.4", "fast", "bulk.csv, line 2: column \"goodput_mbps\" holds no number"),
        (",48,", ",-48,", "bulk.csv, line 3: column \"rate_mbps\" holds no number"),
        ("0.5;2.5", "0.5;;2.5", "bulk.csv, line 3: column \"flow_starts_s\" holds no number"),
        (",46,80,0", "", "bulk.csv, line 3: column \"goodput_mbps\" holds no number"),
    ] {
        let e = e(from, to);
        assert!(e.contains(words), "{from} to {to}: {e}");
    }
    let head = BULK.lines().next().unwrap();
    let empty = bulk_runs(folder(&[("bulk.csv", head)]).path()).unwrap_err().to_string();
    assert!(empty.ends_with("bulk.csv has no measurements"), "{empty}");
    let nothing = sessions(folder(&[]).path()).unwrap_err().to_string();
    assert!(nothing.contains("give the folder that holds bulk.csv and download.csv"), "{nothing}");
}

#[test]
fn the_runs_that_the_command_brings_along_are_whole() {
    let runs = emulated_runs().unwrap();
    assert!(runs.len() >= 6, "{}", runs.len());
    for run in runs {
        assert!(matches!(run.emulator, Emulator::Trimtab { late, .. } if !late.is_zero()));
        assert!(run.goodput_mbps < f64::from(run.rate_mbps), "{}", run.run);
        assert!(run.window_s.0 < run.window_s.1 && run.window_s.1 <= run.duration_s, "{}", run.run);
        assert_eq!(run.flow_starts_s.len(), run.ccas.len(), "{}", run.run);
    }
}

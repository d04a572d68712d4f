//! Access logs with what players send: any lines have statistics within their ranges, or an error of
//! one short line each.

use trimtab_cmcd::{Fields, Line, Reader, Table};
use trimtab_fleet_client::edge::Together;
use trimtab_units::Duration;

pub(crate) fn target(text: &str) {
    let fields = Fields::default();
    let service = "tv".parse().expect("a name");
    let (prefix, together, path) = ([24, 48], Together::default(), String::new());
    let reader = Reader { service, prefix, together, path, fields: fields.clone() };
    let mut table = Table::new(reader, Duration::from_secs(60));
    for line in text.lines() {
        match Line::parse(line, &fields) {
            Ok(line) => assert!(line.started <= line.ended, "{line:?}"),
            Err(error) => {
                let error = error.to_string();
                assert!(!error.contains('\n') && error.len() < 1000, "{error}");
            }
        }
        table.on_line(line);
    }
    for row in table.rows() {
        assert!(row.sessions > 0, "{row:?}");
        assert!(row.rebuffering.is_none_or(|share| (0.0..=1.0).contains(&share)), "{row:?}");
        assert!(row.bitrate_mbps.is_none_or(|mbps| (0.0..=1000.0).contains(&mbps)), "{row:?}");
        assert!(row.startup_s.is_none_or(|s| s >= 0.0 && s.is_finite()), "{row:?}");
    }
}

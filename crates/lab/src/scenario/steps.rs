//! Values that follow each other over and over, each with how long it lasts: the text behind `step:`.

use std::fmt;
use std::str::FromStr;

use trimtab_units::Duration;

/// Reads `12Mbit/s,48Mbit/s@20s` or `24Mbit/s@10s,0Mbit/s@3s`: a value without a time takes that of
/// the next one. `example` stands in the message where no time is given.
pub(super) fn read<T: FromStr<Err: fmt::Display>>(
    text: &str,
    example: &str,
) -> Result<Vec<(Duration, T)>, String> {
    let mut steps = Vec::new();
    // Times come from behind, so steps are read from the last on.
    let mut each = None;
    for step in text.rsplit(',') {
        let (value, time) = match step.split_once('@') {
            Some((value, time)) => (value, Some(time)),
            None => (step, None),
        };
        if let Some(time) = time {
            each = Some(time.parse::<Duration>().map_err(|e| format!("{time:?}: {e}"))?);
        }
        let each = each.ok_or(example)?;
        if each < Duration::from_millis(1) {
            return Err("a step lasts at least 1ms".to_owned());
        }
        steps.push((each, value.parse::<T>().map_err(|e| format!("{value:?}: {e}"))?));
    }
    steps.reverse();
    Ok(steps)
}

/// Writes what [`read`] reads, with `step:` ahead of it.
pub(super) fn write<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    steps: &[(Duration, T)],
) -> fmt::Result {
    f.write_str("step:")?;
    for (i, (each, value)) in steps.iter().enumerate() {
        write!(f, "{}{value}", if i == 0 { "" } else { "," })?;
        // Those of the same time in a row share it.
        if steps.get(i + 1).is_none_or(|(next, _)| next != each) {
            write!(f, "@{each}")?;
        }
    }
    Ok(())
}

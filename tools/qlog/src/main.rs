//! Reads a log in the format qlog with Cloudflare's crate `qlog`, and prints what that reader made of
//! it, one JSON text per line: the header, then each event. `known` before an event says that the
//! reader knows its name and fields, `other` that it took any.
//!
//! ```sh
//! cargo run -p trimtab-qlog-reader -- FILE.sqlog
//! ```

use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use qlog::reader::{Event, QlogSeqReader};
use serde_json::to_string;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).ok_or("give the file to read, e.g. trace.sqlog")?;
    let reader = QlogSeqReader::new(Box::new(BufReader::new(File::open(file)?)))?;
    println!("{}", to_string(&reader.qlog)?);
    for event in reader {
        match event {
            Event::Qlog(event) => println!("known {}", to_string(&event)?),
            Event::Json(event) => println!("other {}", to_string(&event)?),
        }
    }
    Ok(())
}

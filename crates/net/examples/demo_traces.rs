//! Writes the traces of the demo: `cargo run -p trimtab-net --example demo_traces -- traces`.

use std::error::Error;
use std::path::PathBuf;

use trimtab_net::generate::demo_set;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("name the folder to write the traces to")?;
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder)?;
    for (name, trace) in demo_set() {
        let path = folder.join(format!("{name}.trace.gz"));
        trace.write(&path)?;
        let stats = trace.stats();
        println!(
            "{}: {:.0} s, mean {:.1} Mbit/s, p5 {:.1}, p95 {:.1}, cv {:.2}, outages {:.1}%",
            path.display(),
            stats.duration.as_secs_f64(),
            stats.mean.mbps(),
            stats.p5.mbps(),
            stats.p95.mbps(),
            stats.cv,
            100.0 * stats.outage_fraction,
        );
    }
    Ok(())
}

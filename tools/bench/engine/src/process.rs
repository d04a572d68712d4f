//! Engines as processes of their own, and what the kernel counts of them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use trimtab_engine::add_token;
use trimtab_fleet_client::{NewToken, Role};

/// The kernel counts processor time in hundredths of a second (`USER_HZ`), on every machine that Linux runs on today.
const TICKS_PER_S: f64 = 100.0;

/// A folder with a configuration and a service.
pub(crate) struct Site {
    folder: tempfile::TempDir,
    config: PathBuf,
}

impl Site {
    /// With a service `tv` whose intervals have this length, and lines of the configuration that
    /// say where to keep it all.
    pub(crate) fn new(interval: &str, store: &str) -> Result<Self, String> {
        let fail = |e: std::io::Error| format!("cannot write a configuration: {e}");
        let folder = tempfile::tempdir().map_err(fail)?;
        let services = folder.path().join("services");
        std::fs::create_dir(&services).map_err(fail)?;
        let service = format!(
            "name = \"tv\"\ninterval = \"{interval}\"\nreward = \"p50(throughput) - 10 * mean(loss)\"\n[knobs]\n\
             gamma = {{ min = 1, max = 5000, scale = \"log\" }}\n\
             startup_rate_max = {{ min = 1, max = 1000, scale = \"log\" }}\n[safe]\nstartup_rate_max = 20\n"
        );
        std::fs::write(services.join("tv.toml"), service).map_err(fail)?;
        let config = folder.path().join("engine.toml");
        let text = format!(
            "listen = \"127.0.0.1:0\"\nservices = \"services\"\ngrace = \"20ms\"\n[limits]\n\
             requests_per_second = 1000000\nnew_aggregates = 100000000\n\
             connections_per_address = 20000\n{store}"
        );
        std::fs::write(&config, text).map_err(fail)?;
        Ok(Self { folder, config })
    }

    /// One whose engine has a file of its own.
    pub(crate) fn with_file(interval: &str) -> Result<Self, String> {
        Self::new(interval, "[store]\nfile = \"engine.db\"\n")
    }

    pub(crate) fn token(&self, name: &str, role: Role) -> Result<String, String> {
        let services: &[&str] = if role == Role::Edge { &["tv"] } else { &[] };
        add_token(&self.config, &NewToken::new(name, role, services)).map_err(|e| e.to_string())
    }

    /// Starts an engine, and waits until it listens.
    pub(crate) fn start(&self) -> Result<Engine, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut child = Command::new(program)
            .arg("engine")
            .arg(&self.config)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start an engine: {e}"))?;
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once("listens at http://")?;
            Some(rest.split(',').next()?.to_owned())
        });
        // What it says later must not fill the pipe.
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| eprintln!("{line}"));
        });
        let address = address.ok_or("the engine does not listen")?;
        Ok(Engine { child, address })
    }

    /// Bytes of the store's files.
    pub(crate) fn store_bytes(&self) -> u64 {
        ["engine.db", "engine.db-wal"]
            .iter()
            .filter_map(|file| std::fs::metadata(self.folder.path().join(file)).ok())
            .map(|file| file.len())
            .sum()
    }
}

/// An engine that runs.
pub(crate) struct Engine {
    child: Child,
    pub(crate) address: String,
}

/// What the kernel counted of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    pub(crate) processor_s: f64,
    /// In memory now.
    pub(crate) resident: u64,
    /// Handed to the disk.
    pub(crate) written: u64,
}

impl Engine {
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn used(&self) -> Result<Used, String> {
        let read = |file: &str| {
            let path = Path::new("/proc").join(self.child.id().to_string()).join(file);
            std::fs::read_to_string(&path)
                .map_err(|e| format!("cannot read {}: {e}", path.display()))
        };
        let stat = read("stat")?;
        // After the name, which may have blanks: fields 14 and 15 of proc(5).
        let fields: Vec<&str> =
            stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks =
            |field: usize| fields.get(field).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
        let number = |text: &str, key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
        };
        Ok(Used {
            processor_s: (ticks(11) + ticks(12)) / TICKS_PER_S,
            resident: number(&read("status")?, "VmRSS:") * 1024,
            written: number(&read("io")?, "write_bytes:"),
        })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

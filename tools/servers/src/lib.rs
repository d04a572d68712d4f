//! PostgreSQL and NATS with JetStream for tests and benchmarks: the real servers, each in a temporary folder, on a socket or
//! port that nobody else has, and gone when the program that started them is gone, however it ends.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// How the servers treat the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// As in use: a commit is on the disk when it returns.
    Synced,
    /// A loss of power may lose commits; the death of a process, or of the server, does not. For tests.
    Unsynced,
}

/// PostgreSQL and NATS that run. Dropping it ends both.
pub struct Servers {
    folder: tempfile::TempDir,
    bin: PathBuf,
    nats_port: u16,
    /// Each ends when its input does.
    _children: [Child; 2],
    databases: AtomicU32,
}

/// Ends its server, and the folder of it, when its input ends; says `ready` first, once the server answers.
const KEEPER: &str = r#"
ready=$1 server_signal=$2
shift 2
"$@" >&2 &
server=$!
tries=0
until sh -c "$ready" >/dev/null 2>&1; do
	tries=$((tries + 1))
	if [ $tries -gt 300 ] || ! kill -0 $server 2>/dev/null; then
		echo failed
		kill -9 $server 2>/dev/null
		exit 1
	fi
	sleep 0.1
done
echo ready
cat >/dev/null
kill -s "$server_signal" $server
wait $server
"#;

impl Servers {
    /// Starts both.
    ///
    /// # Errors
    /// One is not installed, or does not start: what to do about it.
    pub fn start(disk: Disk) -> Result<Self, String> {
        let bin = postgres_bin()?;
        let nats = nats_server()?;
        let folder = tempfile::Builder::new()
            .prefix("trimtab-servers-")
            .tempdir()
            .map_err(|e| format!("no temporary folder: {e}"))?;
        let data = folder.path().join("data");
        std::fs::create_dir(&data).map_err(|e| format!("cannot make {}: {e}", data.display()))?;
        if is_root() {
            // PostgreSQL refuses to run as root.
            open_to_all(folder.path())?;
            run(Command::new("chown").arg("postgres").arg(&data).arg(folder.path()))?;
        }
        let mut init = as_postgres(&bin.join("initdb"));
        run(init
            .args(["--no-sync", "-A", "trust", "-E", "UTF8", "--locale=C", "-U", "postgres", "-D"])
            .arg(&data))?;
        let mut server = as_postgres(&bin.join("postgres"));
        server.arg("-D").arg(&data).args(["-c", "listen_addresses=", "-c"]);
        server.arg(format!("unix_socket_directories={}", folder.path().display()));
        server.args(["-c", "max_connections=200", "-c", "shared_buffers=256MB"]);
        if disk == Disk::Unsynced {
            server.args(["-c", "fsync=off"]);
        }
        let ready =
            format!("{} -q -h {}", bin.join("pg_isready").display(), folder.path().display());
        let postgres = keep(&ready, "INT", &server, "PostgreSQL")?;
        let nats_port = free_port()?;
        let store = folder.path().join("nats");
        // What streams set aside need not be free here: tests make many, and fill none.
        let conf = folder.path().join("nats.conf");
        let text = format!(
            "listen: \"127.0.0.1:{nats_port}\"\njetstream {{ store_dir: {store:?}, max_file_store: 100GB }}\n"
        );
        std::fs::write(&conf, text).map_err(|e| format!("cannot write {}: {e}", conf.display()))?;
        let mut server = Command::new(nats);
        server.arg("-c").arg(&conf);
        let ready = format!("exec 3<>/dev/tcp/127.0.0.1/{nats_port}");
        let nats = keep(&format!("bash -c '{ready}'"), "INT", &server, "NATS")?;
        let databases = AtomicU32::new(0);
        Ok(Self { folder, bin, nats_port, _children: [postgres, nats], databases })
    }

    /// The same, for tests: none where they are not installed, which is said; with `CI` set, that fails instead.
    ///
    /// # Panics
    /// They do not start, or `CI` is set and they are not there.
    pub fn for_tests() -> Option<Self> {
        if let Err(why) = postgres_bin().and(nats_server()) {
            assert!(std::env::var_os("CI").is_none(), "CI needs both: {why}");
            eprintln!("skipped: {why}");
            return None;
        }
        Some(Self::start(Disk::Unsynced).expect("they start"))
    }

    /// Makes a database that nobody else has, and gives lines of an engine's configuration for it: `[store]` and
    /// `[broker]`.
    ///
    /// # Panics
    /// The server does not answer.
    pub fn configuration(&self) -> String {
        let name = format!("trimtab_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        run(Command::new(self.bin.join("createdb"))
            .args(["-U", "postgres", "-h"])
            .arg(self.folder.path())
            .arg(&name))
        .expect("a database");
        format!(
            "[store]\npostgres = \"host={} user=postgres dbname={name}\"\n[broker]\nnats = \"nats://127.0.0.1:{}\"\n\
             stream = \"{name}\"\n",
            self.folder.path().display(),
            self.nats_port
        )
    }

    /// The folder with the files of both.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends every connection to a database, as a restart of PostgreSQL would.
    ///
    /// # Panics
    /// The server does not answer.
    pub fn cut_connections(&self, database: &str) {
        let cut = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
        );
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args(["-q", "-U", "postgres", "-h"]).arg(self.folder.path()).args(["-c", &cut]);
        run(&mut psql).expect("the server answers");
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self._children {
            drop(child.stdin.take());
            // It waits for its server; the folder goes after that.
            let _ = child.wait();
        }
    }
}

/// Runs a server under [`KEEPER`], and waits until it answers.
fn keep(ready: &str, signal: &str, server: &Command, what: &str) -> Result<Child, String> {
    let mut keeper = Command::new("sh");
    keeper
        .args(["-c", KEEPER, "keeper", ready, signal])
        .arg(server.get_program())
        .args(server.get_args());
    keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = keeper.spawn().map_err(|e| format!("cannot start {what}: {e}"))?;
    let mut line = String::new();
    let said = BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line);
    if said.is_ok() && line.trim() == "ready" {
        return Ok(child);
    }
    let _ = child.wait();
    Err(format!("{what} does not start; by hand it would say why: {server:?}"))
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

fn as_postgres(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

fn open_to_all(folder: &Path) -> Result<(), String> {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
        .map_err(|e| format!("cannot open {}: {e}", folder.display()))
}

fn run(command: &mut Command) -> Result<(), String> {
    let done =
        command.current_dir("/").output().map_err(|e| format!("cannot run {command:?}: {e}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&done.stderr).trim()))
}

/// The newest PostgreSQL that Debian, or the path, has.
fn postgres_bin() -> Result<PathBuf, String> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
    found.sort();
    found.reverse();
    found.extend(on_path("initdb").and_then(|file| file.parent().map(Path::to_owned)));
    found
        .into_iter()
        .find(|bin| bin.join("initdb").exists() && bin.join("postgres").exists())
        .ok_or_else(|| "no PostgreSQL here: install the package postgresql".to_owned())
}

fn nats_server() -> Result<PathBuf, String> {
    on_path("nats-server").ok_or_else(|| "no NATS here: install the package nats-server".to_owned())
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let usual = [PathBuf::from("/usr/sbin")];
    std::env::split_paths(&path)
        .chain(usual)
        .map(|folder| folder.join(program))
        .find(|file| file.exists())
}

fn free_port() -> Result<u16, String> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|e| format!("no free port: {e}"))
}

//! PostgreSQL and NATS with JetStream for tests and benchmarks: the real servers, each in a
//! temporary folder, on a socket or port that nobody else has, and gone when the program that
//! started them is gone, however it ends.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
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

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The store.
    Postgres,
    /// The broker.
    Nats,
}

/// A certificate for `localhost`, by which both servers are then spoken to in TLS.
#[derive(Clone, Copy, Debug)]
pub struct Encryption<'a> {
    /// The certificate, in PEM.
    pub certificate: &'a Path,
    /// Its key, in PEM.
    pub key: &'a Path,
}

/// PostgreSQL and NATS that run. Dropping it ends both.
pub struct Servers {
    folder: tempfile::TempDir,
    bin: PathBuf,
    ports: [u16; 2],
    encrypted: bool,
    running: [Running; 2],
    databases: AtomicU32,
}

/// A server, and how it is started again.
struct Running {
    what: &'static str,
    command: Command,
    /// Succeeds when it answers.
    ready: String,
    /// Ends when its input does.
    keeper: Child,
}

/// Ends its server when its input says by which signal, or ends; says `ready` first, once the server answers.
const KEEPER: &str = r#"
ready=$1
shift
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
read -r how || how=INT
kill -s "$how" $server
wait $server
"#;

impl Servers {
    /// Starts both.
    ///
    /// # Errors
    /// One is not installed, or does not start: what to do about it.
    pub fn start(disk: Disk) -> Result<Self, String> {
        Self::start_with(disk, None)
    }

    fn start_with(disk: Disk, encryption: Option<Encryption<'_>>) -> Result<Self, String> {
        let bin = postgres_bin()?;
        let nats = nats_server()?;
        let folder = tempfile::Builder::new()
            .prefix("trimtab-servers-")
            .tempdir()
            .map_err(|e| format!("no temporary folder: {e}"))?;
        let ports = [free_port()?, free_port()?];
        let postgres = postgres(&bin, folder.path(), disk, encryption, ports[0])?;
        let nats = broker(&nats, folder.path(), encryption, ports[1])?;
        let encrypted = encryption.is_some();
        let databases = AtomicU32::new(0);
        Ok(Self { folder, bin, ports, encrypted, running: [postgres, nats], databases })
    }

    /// The same, for tests: none where they are not installed, which is said; with `CI` set, that fails instead.
    ///
    /// # Panics
    /// They do not start, or `CI` is set and they are not there.
    pub fn for_tests() -> Option<Self> {
        Self::for_tests_with(Disk::Unsynced, None)
    }

    /// The same, on the disk when a commit returns.
    ///
    /// # Panics
    /// As [`for_tests`](Self::for_tests).
    pub fn synced_for_tests() -> Option<Self> {
        Self::for_tests_with(Disk::Synced, None)
    }

    /// The same, in TLS.
    ///
    /// # Panics
    /// As [`for_tests`](Self::for_tests).
    pub fn encrypted_for_tests(encryption: Encryption<'_>) -> Option<Self> {
        Self::for_tests_with(Disk::Unsynced, Some(encryption))
    }

    fn for_tests_with(disk: Disk, encryption: Option<Encryption<'_>>) -> Option<Self> {
        if let Err(why) = postgres_bin().and(nats_server()) {
            assert!(std::env::var_os("CI").is_none(), "CI needs both: {why}");
            eprintln!("skipped: {why}");
            return None;
        }
        Some(Self::start_with(disk, encryption).expect("they start"))
    }

    /// Makes a database that nobody else has, and gives lines of an engine's configuration for it: `[store]`, and
    /// `[broker]` where it has one.
    ///
    /// # Panics
    /// The server does not answer.
    pub fn configuration(&self, broker: bool) -> String {
        let name = format!("trimtab_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        run(self.client("createdb").arg(&name)).expect("a database");
        let [postgres, nats] = self.ports;
        // PostgreSQL speaks TLS on sockets of the network only.
        let place = if self.encrypted {
            "localhost".to_owned()
        } else {
            self.folder.path().display().to_string()
        };
        let store = format!(
            "[store]\npostgres = \"host={place} port={postgres} user=postgres dbname={name}\"\n"
        );
        if !broker {
            return store;
        }
        let scheme = if self.encrypted { "tls" } else { "nats" };
        format!("{store}[broker]\nnats = \"{scheme}://localhost:{nats}\"\nstream = \"{name}\"\n")
    }

    /// Starts PgBouncer before PostgreSQL; none where it is not installed, which is said; with `CI` set, that fails
    /// instead.
    ///
    /// # Panics
    /// It does not start, or `CI` is set and it is not there.
    pub fn pooler(&self) -> Option<Pooler> {
        let Some(program) = on_path("pgbouncer") else {
            let why = "no PgBouncer here: install the package pgbouncer";
            assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{why}");
            println!("skipped: {why}");
            return None;
        };
        let version = Command::new(&program).arg("--version").output().expect("it runs").stdout;
        let version = String::from_utf8_lossy(&version).into_owned();
        let minor = version.trim_start_matches("PgBouncer 1.").split('.').next();
        let prepares = minor.and_then(|minor| minor.parse::<u32>().ok()).is_none_or(|m| m >= 21);
        let lends = match prepares {
            true => "pool_mode = transaction\ndefault_pool_size = 3\nmax_prepared_statements = 100",
            false => "pool_mode = session\ndefault_pool_size = 50",
        };
        let (folder, port) = (self.folder.path().display(), free_port().expect("a port"));
        let conf = self.folder.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host={folder} port={} user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = {port}\n\
             unix_socket_dir = {folder}\nauth_type = any\n{lends}\n",
            self.ports[0]
        );
        std::fs::write(&conf, text).expect("a file");
        let mut server = as_postgres(&program);
        server.arg("-q").arg(&conf);
        let ready = format!("test -S {folder}/.s.PGSQL.{port}");
        Some(Pooler {
            _running: Running::start("PgBouncer", server, ready).expect("it starts"),
            port,
        })
    }

    /// Processor time that both have used, with all their processes, in seconds.
    pub fn processor_s(&self) -> f64 {
        let all = processes();
        let mut theirs: BTreeSet<u32> = self.running.iter().map(|one| one.keeper.id()).collect();
        // Whose parent is known by then belongs to them, however deep.
        loop {
            let more = all.iter().filter(|one| theirs.contains(&one.parent)).map(|one| one.pid);
            let before = theirs.len();
            theirs.extend(more.collect::<Vec<_>>());
            if theirs.len() == before {
                break;
            }
        }
        let ticks: f64 = all.iter().filter(|one| theirs.contains(&one.pid)).map(|p| p.ticks).sum();
        // In hundredths of a second (`USER_HZ`), on every machine that Linux runs on today.
        ticks / 100.0
    }

    /// Kills one, as a loss of power would. What it had open to others is cut.
    ///
    /// # Panics
    /// It cannot be told.
    pub fn kill(&mut self, which: Which) {
        let running = &mut self.running[which as usize];
        let mut input = running.keeper.stdin.take().expect("it runs");
        input.write_all(b"KILL\n").expect("its keeper reads");
        drop(input);
        let _ = running.keeper.wait();
    }

    /// Starts one again that was [killed](Self::kill).
    ///
    /// # Panics
    /// It does not start.
    pub fn start_again(&mut self, which: Which) {
        let running = &mut self.running[which as usize];
        // What a killed PostgreSQL had started ends a moment after it, and until then a new one refuses to start.
        let mut tries = 0;
        running.keeper = loop {
            match keep(&running.ready, &running.command, running.what) {
                Ok(keeper) => break keeper,
                Err(why) if tries == 50 => panic!("{why}"),
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(100)),
            }
            tries += 1;
        };
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
        run(self.client("psql").args(["-q", "-c", &cut])).expect("the server answers");
    }

    /// A program of PostgreSQL's that asks its server.
    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.args(["-U", "postgres", "-p", &self.ports[0].to_string(), "-h"]);
        command.arg(self.folder.path());
        command
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // It waits for its server; the folder goes after that.
        let _ = self.keeper.wait();
    }
}

/// PgBouncer, which lends connections to PostgreSQL: for one transaction each where it knows what was prepared (since
/// 1.21), else for as long as its client is there. Dropping it ends it.
pub struct Pooler {
    _running: Running,
    port: u16,
}

impl Pooler {
    /// A database's lines of an engine's configuration by way of it, where `store` has those without.
    pub fn configuration(&self, servers: &Servers, store: &str) -> String {
        let direct = format!("port={}", servers.ports[0]);
        let pooled = store.replace(&direct, &format!("port={}", self.port));
        format!("{pooled}{}", store.replace("[store]\npostgres", "listen"))
    }
}

/// Starts PostgreSQL with an empty cluster.
fn postgres(
    bin: &Path,
    folder: &Path,
    disk: Disk,
    encryption: Option<Encryption<'_>>,
    port: u16,
) -> Result<Running, String> {
    let data = folder.join("data");
    std::fs::create_dir(&data).map_err(|e| format!("cannot make {}: {e}", data.display()))?;
    if is_root() {
        // PostgreSQL refuses to run as root.
        open_to_all(folder)?;
        run(Command::new("chown").arg("postgres").arg(&data).arg(folder))?;
    }
    let mut init = as_postgres(&bin.join("initdb"));
    run(init
        .args(["--no-sync", "-A", "trust", "-E", "UTF8", "--locale=C", "-U", "postgres", "-D"])
        .arg(&data))?;
    let mut server = as_postgres(&bin.join("postgres"));
    server.arg("-D").arg(&data).args(["-c", &format!("port={port}"), "-c"]);
    server.arg(format!("unix_socket_directories={}", folder.display()));
    server.args(["-c", "max_connections=200", "-c", "shared_buffers=256MB", "-c"]);
    if let Some(Encryption { certificate, key }) = encryption {
        server.arg("listen_addresses=localhost");
        for (setting, file) in [("ssl_cert_file", certificate), ("ssl_key_file", key)] {
            let own = data.join(setting);
            // Its key has to be its own, and nobody else's.
            run(Command::new("install").args(["-m", "600"]).arg(file).arg(&own))?;
            if is_root() {
                run(Command::new("chown").arg("postgres").arg(&own))?;
            }
            server.args(["-c", &format!("{setting}={}", own.display())]);
        }
        server.args(["-c", "ssl=on"]);
    } else {
        server.arg("listen_addresses=");
    }
    if disk == Disk::Unsynced {
        server.args(["-c", "fsync=off"]);
    }
    let ready =
        format!("{} -q -h {} -p {port}", bin.join("pg_isready").display(), folder.display());
    Running::start("PostgreSQL", server, ready)
}

/// Starts NATS with JetStream.
fn broker(
    program: &Path,
    folder: &Path,
    encryption: Option<Encryption<'_>>,
    port: u16,
) -> Result<Running, String> {
    let store = folder.join("nats");
    // What streams set aside need not be free here: tests make many, and fill none.
    let conf = folder.join("nats.conf");
    let tls = encryption.map_or_else(String::new, |Encryption { certificate, key }| {
        format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}\n")
    });
    let text = format!(
        "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: {store:?}, max_file_store: 100GB }}\n{tls}"
    );
    std::fs::write(&conf, text).map_err(|e| format!("cannot write {}: {e}", conf.display()))?;
    let mut server = Command::new(program);
    server.arg("-c").arg(&conf);
    Running::start("NATS", server, format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'"))
}

impl Running {
    fn start(what: &'static str, command: Command, ready: String) -> Result<Self, String> {
        let keeper = keep(&ready, &command, what)?;
        Ok(Self { what, command, ready, keeper })
    }
}

/// Runs a server under [`KEEPER`], and waits until it answers.
fn keep(ready: &str, server: &Command, what: &str) -> Result<Child, String> {
    let mut keeper = Command::new("sh");
    keeper.args(["-c", KEEPER, "keeper", ready]).arg(server.get_program()).args(server.get_args());
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

/// A process, and the processor time that it and its children that ended have used.
struct Process {
    pid: u32,
    parent: u32,
    ticks: f64,
}

/// Those that run: proc(5).
fn processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let read = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // After the name, which may have blanks: fields 4 and 14 to 17.
        let fields: Vec<f64> =
            stat.rsplit(')').next()?.split_whitespace().map(|f| f.parse().unwrap_or(0.0)).collect();
        let (parent, ticks) = (*fields.get(1)? as u32, fields.get(11..15)?.iter().sum());
        Some(Process { pid, parent, ticks })
    };
    entries.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
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

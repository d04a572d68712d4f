//! nginx with a stream, the players, the page and the module, in a folder of the test.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const DOCS: &str = include_str!("../../../../docs/how-to/learn-from-players.md");
/// A minute of noise, which no encoder makes smaller than it is asked to.
const PICTURE: &str = "testsrc2=size=320x180:rate=25,noise=alls=60:allf=t";
const LADDER_KBPS: [u32; 3] = [400, 1200, 3000];

pub(crate) struct Site {
    nginx: Child,
    folder: tempfile::TempDir,
    pub(crate) port: u16,
}

/// None where something is missing, which CI may not say.
fn missing<T>(what: &str) -> Option<T> {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "CI has {what}");
    println!("skipped: there is no {what}: ./dev players installs it");
    None
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn players() -> Option<PathBuf> {
    let folder = repository().join("target/players/node_modules");
    if folder.join("hls.js").is_dir() { Some(folder) } else { missing("hls.js and dash.js") }
}

/// As `TRIMTAB_QUALITY` says, or of the system.
fn ffmpeg() -> Option<PathBuf> {
    let folder = std::env::var_os("TRIMTAB_QUALITY").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| repository().join("target/quality"));
    let all = [folder.join("ffmpeg"), PathBuf::from("ffmpeg")];
    let runs = |program: &PathBuf| Command::new(program).arg("-version").output().is_ok();
    all.into_iter().find(runs).map_or_else(|| missing("ffmpeg"), Some)
}

/// One set of segments, with a manifest for DASH and playlists for HLS.
fn encode(ffmpeg: &Path, into: &Path) {
    let mut command = Command::new(ffmpeg);
    command.args(["-v", "error", "-f", "lavfi", "-i", PICTURE, "-t", "60"]);
    for (rung, kbps) in LADDER_KBPS.iter().enumerate() {
        command.args(["-map", "0"]);
        for option in ["b:v", "maxrate:v", "bufsize:v"] {
            command.args([format!("-{option}:{rung}"), format!("{kbps}k")]);
        }
    }
    command.args(["-c:v", "libx264", "-preset", "ultrafast", "-sc_threshold", "0"]);
    command.args(["-g", "50", "-keyint_min", "50", "-f", "dash", "-seg_duration", "2"]);
    command.args(["-use_template", "1", "-use_timeline", "0", "-hls_playlist", "1"]);
    command.args(["-adaptation_sets", "id=0,streams=v"]);
    command.args(["-init_seg_name", "init-$RepresentationID$.mp4"]);
    command.args(["-media_seg_name", "$RepresentationID$-$Number$.m4s", "stream.mpd"]);
    let done = command.current_dir(into).output().expect("ffmpeg runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The form of the log that the docs give.
fn log_format() -> &'static str {
    let begin = DOCS.find("log_format cmcd").expect("the docs have it");
    let end = DOCS[begin..].find(';').expect("it ends");
    &DOCS[begin..=begin + end]
}

/// Only root's nginx has workers of another user, who may not read the folder.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

impl Site {
    /// Posts to `/qoe` go to `reports`, as behind the proxy of the docs.
    pub(crate) fn start(reports: SocketAddr) -> Option<Self> {
        let (players, ffmpeg) = (players()?, ffmpeg()?);
        if Command::new("nginx").arg("-v").output().is_err() {
            return missing("nginx");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let media = folder.path().join("media");
        fs::create_dir(&media).expect("a folder");
        encode(&ffmpeg, &media);
        fs::write(media.join("index.html"), "<title>gone</title>").expect("a file");
        fs::write(folder.path().join("page.html"), include_str!("page.html")).expect("a file");
        let js = repository().join("crates/cmcd/js");
        for (name, target) in [("players", &players), ("js", &js)] {
            std::os::unix::fs::symlink(target, folder.path().join(name)).expect("a link");
        }
        let at = folder.path().display();
        // Free a moment ago: nginx takes no socket of ours.
        let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().unwrap().port();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {at}/{name};\n"))
            .concat();
        let user = if is_root() { "user root;\n" } else { "" };
        let config = format!(
            "{user}daemon off;\npid {at}/nginx.pid;\nerror_log {at}/error.log;\nevents {{}}\n\
             http {{\n{temporary}{}\naccess_log {at}/cmcd.log cmcd;\n\
             types {{ text/html html; text/javascript js; video/mp4 mp4 m4s;\n\
             application/dash+xml mpd; application/vnd.apple.mpegurl m3u8; }}\n\
             server {{ listen 127.0.0.1:{port};\n root {at};\n\
             location = /qoe {{ access_log off; proxy_pass http://{reports};\n\
             proxy_set_header X-Real-IP $remote_addr; }} }} }}\n",
            log_format()
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, config).expect("a configuration");
        let nginx = Command::new("nginx")
            .arg("-c")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx starts");
        let site = Self { nginx, folder, port };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = fs::read_to_string(site.folder.path().join("error.log"));
            assert!(start.elapsed() < Duration::from_secs(30), "nginx does not listen: {log:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(site)
    }

    /// The access log until now.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("cmcd.log")).expect("a log")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // Its workers end with it, where it is asked to.
        let pid = self.nginx.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.nginx.wait();
    }
}

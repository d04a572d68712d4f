//! A browser without a screen, told what to do by its debugging protocol over two pipes: nothing of
//! that crosses the network.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::error::WebrtcError;

const PROGRAM: &str = "chromium";
const RECEIVER: &str = include_str!("receiver.js");

/// A frame that was presented.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Presented {
    /// The RTP timestamp that it was sent with.
    pub(crate) timestamp: u32,
    /// When it was on the screen: milliseconds since 1970, by the system's clock.
    pub(crate) unix_ms: f64,
}

/// A browser with a page that receives a call.
#[derive(Debug)]
pub(crate) struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    page: String,
    asked: u64,
    _folder: tempfile::TempDir,
}

impl Browser {
    /// Whether there is one.
    pub(crate) fn check() -> Result<(), WebrtcError> {
        Command::new(PROGRAM).arg("--version").output().map_err(WebrtcError::NoBrowser).map(drop)
    }

    /// Starts it in the network namespace of the caller.
    pub(crate) fn start() -> Result<Self, WebrtcError> {
        Self::check()?;
        let system = WebrtcError::system::<std::io::Error>;
        let folder = tempfile::tempdir().map_err(system("make a folder for the browser"))?;
        let pipes = ["to", "from"].map(|name| folder.path().join(name));
        let made = Command::new("mkfifo").args(&pipes).status();
        made.map_err(system("make pipes to the browser"))?;
        let script = "profile=$1 to=$2 from=$3; shift 3; exec \"$0\" --headless=new --no-sandbox \
                      --disable-gpu --disable-dev-shm-usage --mute-audio \
                      --autoplay-policy=no-user-gesture-required --remote-debugging-pipe \
                      --user-data-dir=\"$profile\" about:blank 3<\"$to\" 4>\"$from\"";
        let child = Command::new("sh")
            .args(["-c", script, PROGRAM])
            .arg(folder.path().join("profile"))
            .args(&pipes)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(WebrtcError::NoBrowser)?;
        let to = OpenOptions::new().write(true).open(&pipes[0]);
        let from = File::open(&pipes[1]);
        let mut browser = Self {
            child,
            to: to.map_err(system("open a pipe to the browser"))?,
            from: BufReader::new(from.map_err(system("open a pipe from the browser"))?),
            page: String::new(),
            asked: 0,
            _folder: folder,
        };
        let target = browser.tell("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.tell("Target.attachToTarget", &attach)?;
        browser.page = attached["sessionId"].as_str().unwrap_or_default().to_owned();
        browser.value(RECEIVER)?;
        Ok(browser)
    }

    /// Its offer to receive a call, in SDP.
    pub(crate) fn offer(&mut self) -> Result<String, WebrtcError> {
        let sdp = self.value("receiver.offer()")?;
        Ok(sdp.as_str().unwrap_or_default().to_owned())
    }

    /// Takes the answer to its offer, in SDP.
    pub(crate) fn answer(&mut self, sdp: &str) -> Result<(), WebrtcError> {
        self.value(&format!("receiver.answer({})", json!(sdp))).map(drop)
    }

    /// The frames that it presented since last asked.
    pub(crate) fn take_frames(&mut self) -> Result<Vec<Presented>, WebrtcError> {
        let frames = self.value("receiver.takeFrames()")?;
        let presented = |frame: &Value| {
            let timestamp = u32::try_from(frame[0].as_u64()?).ok()?;
            Some(Presented { timestamp, unix_ms: frame[1].as_f64()? })
        };
        Ok(frames.as_array().into_iter().flatten().filter_map(presented).collect())
    }

    /// What getStats reports of the video.
    pub(crate) fn stats(&mut self) -> Result<Value, WebrtcError> {
        self.value("receiver.stats()")
    }

    /// The value of an expression in the page.
    fn value(&mut self, expression: &str) -> Result<Value, WebrtcError> {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.tell("Runtime.evaluate", &params)?;
        if !answer["exceptionDetails"].is_null() {
            return Err(failed(expression, &answer["exceptionDetails"]));
        }
        Ok(answer["result"]["value"].take())
    }

    fn tell(&mut self, method: &str, params: &Value) -> Result<Value, WebrtcError> {
        self.asked += 1;
        let mut message = json!({ "id": self.asked, "method": method, "params": params });
        if !self.page.is_empty() {
            message["sessionId"] = json!(self.page);
        }
        let gone = |said: &dyn ToString| WebrtcError::Browser {
            task: method.to_owned(),
            said: said.to_string(),
        };
        self.to.write_all(format!("{message}\0").as_bytes()).map_err(|e| gone(&e))?;
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).map_err(|e| gone(&e))?;
            if bytes.pop() != Some(0) {
                return Err(gone(&"it has ended"));
            }
            let mut answer: Value = serde_json::from_slice(&bytes).map_err(|e| gone(&e))?;
            if answer["id"] == self.asked {
                if !answer["error"].is_null() {
                    return Err(failed(method, &answer["error"]));
                }
                return Ok(answer["result"].take());
            }
        }
    }
}

fn failed(task: &str, said: &Value) -> WebrtcError {
    let task = task.chars().take(60).collect();
    WebrtcError::Browser { task, said: said.to_string() }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

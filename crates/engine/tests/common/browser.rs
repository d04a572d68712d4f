//! A browser without a screen, told what to do by its debugging protocol over two pipes: no driver, no network.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const PROGRAM: &str = "chromium";
/// A machine that is busy takes its time.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Browser {
    child: Child,
    say: File,
    hear: BufReader<File>,
    page: String,
    asked: u64,
    _folder: tempfile::TempDir,
}

impl Browser {
    /// Starts one that reaches this machine alone; none where this machine has none, which CI may
    /// not say.
    pub(crate) fn start() -> Option<Self> {
        Self::start_for("127.0.0.1", &[])
    }

    /// Starts one that reaches a host alone, with further options of its command.
    pub(crate) fn start_for(host: &str, options: &[String]) -> Option<Self> {
        if Command::new(PROGRAM).arg("--version").output().is_err() {
            assert!(
                std::env::var_os("CI").is_none_or(|ci| ci.is_empty()),
                "CI has chromium installed"
            );
            println!("skipped: there is no chromium");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let pipes = ["say", "hear"].map(|name| folder.path().join(name));
        assert!(Command::new("mkfifo").args(&pipes).status().expect("mkfifo").success());
        let script = "profile=$1 say=$2 hear=$3; shift 3; exec \"$0\" --headless=new --no-sandbox \
                      --disable-gpu --remote-debugging-pipe --user-data-dir=\"$profile\" \
                      --window-size=1180,1400 \"$@\" about:blank 3<\"$say\" 4>\"$hear\"";
        let child = Command::new("sh")
            .args(["-c", script, PROGRAM])
            .arg(folder.path().join("profile"))
            .args(&pipes)
            // Any other name leads nowhere.
            .arg(format!("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {host}"))
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts");
        let say = OpenOptions::new().write(true).open(&pipes[0]).expect("a pipe");
        let hear = BufReader::new(File::open(&pipes[1]).expect("a pipe"));
        let mut browser = Self { child, say, hear, page: String::new(), asked: 0, _folder: folder };
        let target = browser.tell("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.tell("Target.attachToTarget", &attach);
        browser.page = attached["sessionId"].as_str().expect("a session").to_owned();
        browser.tell("Page.enable", &json!({}));
        Some(browser)
    }

    /// Tells it to do something, and gives what it answers.
    pub(crate) fn tell(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let mut message = json!({ "id": self.asked, "method": method, "params": params });
        if !self.page.is_empty() {
            message["sessionId"] = json!(self.page);
        }
        self.say.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        loop {
            let mut bytes = Vec::new();
            self.hear.read_until(0, &mut bytes).expect("the browser answers");
            assert_eq!(bytes.pop(), Some(0), "the browser has gone");
            let mut answer: Value = serde_json::from_slice(&bytes).expect("JSON");
            if answer["id"] == self.asked {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
        }
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.tell("Runtime.evaluate", &params);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {}",
            answer["exceptionDetails"]
        );
        answer["result"]["value"].take()
    }

    /// Waits until an expression is true.
    pub(crate) fn until(&mut self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        while self.value(expression) != json!(true) {
            if Instant::now() > end {
                let shown = self.value("document.body.innerText");
                panic!("never true: {expression}; the page shows {shown}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Types a text where the focus is.
    pub(crate) fn write(&mut self, text: &str) {
        self.tell("Input.insertText", &json!({ "text": text }));
    }

    /// Presses a key: Tab, Enter or a character.
    pub(crate) fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, None),
            "Enter" => (13, Some("\r")),
            _ => (i32::from(key.as_bytes()[0]), Some(key)),
        };
        let mut event = json!({ "type": "keyDown", "key": key, "windowsVirtualKeyCode": code });
        if let Some(text) = text {
            event["text"] = json!(text);
        }
        self.tell("Input.dispatchKeyEvent", &event);
        event["type"] = json!("keyUp");
        self.tell("Input.dispatchKeyEvent", &event);
    }

    /// Goes on with Tab until what has the focus makes an expression of `at` true.
    pub(crate) fn tab_to(&mut self, expression: &str) {
        for _ in 0..40 {
            let there = format!("((at) => {expression})(document.activeElement)");
            if self.value(&there) == json!(true) {
                return;
            }
            self.press("Tab");
        }
        panic!("the keyboard does not lead to {expression}");
    }

    /// A picture of the page as a file.
    pub(crate) fn picture(&mut self, file: &std::path::Path) {
        let answer = self.tell("Page.captureScreenshot", &json!({ "format": "png" }));
        let bytes = STANDARD.decode(answer["data"].as_str().expect("a picture")).expect("base64");
        std::fs::write(file, bytes).expect("a file");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

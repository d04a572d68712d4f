"""Records what libwebrtc's congestion control does, for the test next to this folder: Chromium sends
video to Chromium over a link of `trimtab emu`, and its event log becomes a file of lines.

    sudo ./record.py step.txt.gz 40 --trace step:2Mbit/s,1Mbit/s@10s --delay 25ms --buffer 60KB

Needs root, `trimtab` on the path, and `chromium`. The arguments after the seconds are those of
`trimtab emu`; with `--no-fec` before them the sender repairs by retransmissions alone, as the
simulator does.
"""

import gzip
import http.server
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
PORT = 8080
CHROMIUM = [
    "chromium",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--remote-debugging-port=0",
    "--autoplay-policy=no-user-gesture-required",
    # Addresses in place of names that only multicast DNS resolves.
    "--disable-features=WebRtcHideLocalIpsWithMdns",
]


class Signalling(http.server.BaseHTTPRequestHandler):
    """Serves the page, and keeps what one end says to the other."""

    said: dict[str, bytes] = {}

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path.startswith("/call.html"):
            self.answer(200, (HERE / "call.html").read_bytes())
        elif said := self.said.get(self.path):
            self.answer(200, said)
        else:
            self.answer(204)

    def do_POST(self) -> None:
        self.said[self.path] = self.rfile.read(int(self.headers["content-length"]))
        self.answer(204)


def serve(folder: str, role: str) -> None:
    """The sender's side of the link."""
    server = http.server.ThreadingHTTPServer(("0.0.0.0", PORT), Signalling)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    logs = Path(folder, "logs")
    logs.mkdir()
    page = f"http://127.0.0.1:{PORT}/call.html#{role}"
    options = [f"--user-data-dir={folder}/sender", f"--webrtc-event-logging={logs}"]
    subprocess.run([*CHROMIUM, *options, page], stderr=subprocess.DEVNULL, check=True)


def view(folder: str, seconds: str) -> None:
    """The receiver's side, which ends the call."""
    page = f"http://{os.environ['TRIMTAB_SERVER']}:{PORT}/call.html#receive"
    command = [*CHROMIUM, f"--user-data-dir={folder}/receiver", page]
    try:
        subprocess.run(command, stderr=subprocess.DEVNULL, timeout=float(seconds), check=True)
    except subprocess.TimeoutExpired:
        pass


def main() -> None:
    match sys.argv[1:]:
        case ["serve", folder, role]:
            serve(folder, role)
        case ["view", folder, seconds]:
            view(folder, seconds)
        case [out, seconds, *link]:
            role = "send"
            if link[:1] == ["--no-fec"]:
                role, link = "send-no-fec", link[1:]
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                own = [sys.executable, str(Path(__file__).resolve())]
                server = " ".join([*own, "serve", folder, role])
                command = ["trimtab", "emu", *link, "--server", server, "--"]
                subprocess.run([*command, *own, "view", folder, seconds], check=True)
                (log,) = Path(folder, "logs").iterdir()
                reader = [sys.executable, str(HERE / "event_log.py"), str(log)]
                lines = subprocess.run(reader, stdout=subprocess.PIPE, check=True).stdout
                Path(out).write_bytes(gzip.compress(lines, mtime=0))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()

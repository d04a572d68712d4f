//! What the example needs besides: a page that offers to receive, and a test picture.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use openh264::formats::YUVBuffer;

const PAGE: &str = include_str!("page.html");

/// A test picture: bars that move.
pub(crate) fn picture(number: u32, (width, height): (usize, usize)) -> YUVBuffer {
    let bar = |at: usize| ((at % width + 4 * number as usize) * 7 % 256) as u8;
    let mut planes: Vec<u8> = (0..width * height).map(bar).collect();
    planes.resize(width * height * 3 / 2, 128);
    YUVBuffer::from_vec(planes, width, height)
}

/// A browser that waits for the answer to its offer.
pub(crate) struct Browser {
    /// What it offers, in SDP.
    pub(crate) offer: String,
    stream: TcpStream,
}

impl Browser {
    /// Serves the page at this address until a browser offers to receive.
    pub(crate) fn wait(address: &str) -> Result<Self, Box<dyn Error>> {
        let pages = TcpListener::bind((address, 0))?;
        println!("open http://{}/", pages.local_addr()?);
        loop {
            let mut stream = pages.accept()?.0;
            // Browsers open connections that they may need later, and leave them.
            stream.set_read_timeout(Some(Duration::from_millis(500)))?;
            match request(&stream) {
                Ok(Some(offer)) => return Ok(Self { offer, stream }),
                Ok(None) => drop(respond(&mut stream, "text/html", PAGE)),
                Err(e) => eprintln!("passed over a connection: {e}"),
            }
        }
    }

    /// Gives it the answer, in SDP.
    pub(crate) fn answer(mut self, sdp: &str) -> std::io::Result<()> {
        respond(&mut self.stream, "application/sdp", sdp)
    }
}

/// The offer that a browser posts; `None` for another request.
fn request(stream: &TcpStream) -> Result<Option<String>, Box<dyn Error>> {
    let mut lines = BufReader::new(stream);
    let (mut request, mut line, mut length) = (String::new(), String::new(), 0);
    lines.read_line(&mut request)?;
    while lines.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    if !request.starts_with("POST /offer ") {
        return Ok(None);
    }
    let mut offer = vec![0; length];
    lines.read_exact(&mut offer)?;
    Ok(Some(String::from_utf8(offer)?))
}

fn respond(stream: &mut TcpStream, kind: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n")?;
    write!(stream, "Connection: close\r\n\r\n{body}")
}

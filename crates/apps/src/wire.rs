//! Requests and responses as bytes, for hosts whose connections carry real ones.
//!
//! A request is a message of the length that the application gives it, with the size of the
//! response that it wants at its head. A response is that many bytes of any value.

use std::collections::VecDeque;
use std::io::{self, Read};

use trimtab_units::{Bytes, Time};

use crate::{App, Application, RequestId};

/// Size of the response and length of the message: the least that a message can be.
const HEAD: usize = 16;

/// The message for a response of `size` bytes; `upload` is its own length, at least 16 bytes.
pub fn encode(size: Bytes, upload: Bytes) -> Vec<u8> {
    let length = usize::try_from(upload.get()).unwrap_or(usize::MAX).max(HEAD);
    let mut message = vec![0; length];
    message[..8].copy_from_slice(&size.get().to_be_bytes());
    message[8..HEAD].copy_from_slice(&(length as u64).to_be_bytes());
    message
}

/// Reads a message; the size of the response that it asks for.
///
/// # Errors
/// The reader's, or the message ends within its head.
pub fn read(from: &mut impl Read) -> io::Result<Bytes> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head)?;
    let (size, rest) = parse(&head);
    io::copy(&mut from.take(rest), &mut io::sink())?;
    Ok(size)
}

/// The size of the response, and how much of the message follows its head.
fn parse(head: &[u8]) -> (Bytes, u64) {
    let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |n, &b| n << 8 | u64::from(b));
    let (size, length) = (number(&head[..8]), number(&head[8..HEAD]));
    (Bytes::new(size), length.saturating_sub(HEAD as u64))
}

/// Messages that arrive in pieces, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// What is there of the next head.
    head: Vec<u8>,
    /// The response that the present message asks for, and what is missing of the message.
    present: Option<(Bytes, u64)>,
}

impl Messages {
    /// Takes a piece; calls `complete` with the size of the response for each message that ends
    /// in it.
    pub fn take(&mut self, mut piece: &[u8], mut complete: impl FnMut(Bytes)) {
        loop {
            if let Some((size, missing)) = &mut self.present {
                let taken = usize::try_from(*missing).unwrap_or(usize::MAX).min(piece.len());
                *missing -= taken as u64;
                piece = &piece[taken..];
                if *missing > 0 {
                    return;
                }
                complete(*size);
                self.present = None;
            }
            let (head, rest) = piece.split_at((HEAD - self.head.len()).min(piece.len()));
            self.head.extend_from_slice(head);
            piece = rest;
            if self.head.len() < HEAD {
                return;
            }
            self.present = Some(parse(&self.head));
            self.head.clear();
        }
    }
}

/// Responses that arrive one after the other on one stream of bytes.
#[derive(Clone, Debug, Default)]
pub struct Responses(VecDeque<Awaited>);

/// A response that has not arrived in full.
#[derive(Clone, Debug)]
struct Awaited {
    id: RequestId,
    left: u64,
    began: bool,
}

impl Responses {
    /// A response of that size follows those before it.
    pub fn expect(&mut self, id: RequestId, size: Bytes) {
        self.0.push_back(Awaited { id, left: size.get(), began: false });
    }

    /// So many bytes arrived: reports them to the application, response by response.
    pub fn take(&mut self, app: &mut App, now: Time, bytes: Bytes) {
        let mut length = bytes.get();
        while let (Some(response), true) = (self.0.front_mut(), length > 0) {
            let newly = length.min(response.left);
            let id = response.id;
            if !std::mem::replace(&mut response.began, true) {
                app.on_first_byte(now, id);
            }
            app.on_bytes(now, id, Bytes::new(newly));
            response.left -= newly;
            length -= newly;
            if response.left == 0 {
                app.on_complete(now, id);
                self.0.pop_front();
            }
        }
    }

    /// Whether no response is missing.
    pub fn is_complete(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DownloadConfig, Outcome, Workload};

    /// One that is shorter than its head, one of the usual length, and one for bulk data.
    const MESSAGES: [(u64, u64); 3] = [(7, 1), (90_000, 200), (1_000_000_000_000_000, 17)];

    fn wire() -> Vec<u8> {
        let each = MESSAGES.map(|(size, upload)| encode(Bytes::new(size), Bytes::new(upload)));
        each.concat()
    }

    #[test]
    fn messages_follow_each_other() {
        let wire = wire();
        assert_eq!(wire.len(), 16 + 200 + 17);
        let mut from = &wire[..];
        let sizes: Vec<u64> = std::iter::from_fn(|| read(&mut from).ok()).map(Bytes::get).collect();
        assert_eq!(sizes, MESSAGES.map(|(size, _)| size));
    }

    #[test]
    fn messages_are_told_apart_in_pieces_of_any_length() {
        let wire = wire();
        for length in 1..=wire.len() {
            let (mut messages, mut sizes) = (Messages::default(), Vec::new());
            for piece in wire.chunks(length) {
                messages.take(piece, |size| sizes.push(size.get()));
            }
            assert_eq!(sizes, MESSAGES.map(|(size, _)| size), "pieces of {length}");
        }
        let (mut messages, mut sizes) = (Messages::default(), Vec::new());
        messages.take(&wire[..16 + 199], |size| sizes.push(size.get()));
        assert_eq!(sizes, [7], "the second lacks a byte");
    }

    #[test]
    fn a_message_that_ends_early_is_an_error_and_a_false_length_does_no_harm() {
        let whole = encode(Bytes::new(5000), Bytes::new(40));
        for length in 0..HEAD {
            assert!(read(&mut &whole[..length]).is_err(), "{length}");
        }
        // The size is known once the head is; what is missing of the rest shows next time.
        let mut short = &whole[..20];
        assert_eq!(read(&mut short).unwrap(), Bytes::new(5000));
        assert!(read(&mut short).is_err());
        for length in [0, 3, u64::MAX] {
            let mut lie = whole.clone();
            lie[8..HEAD].copy_from_slice(&length.to_be_bytes());
            assert_eq!(read(&mut &lie[..]).unwrap(), Bytes::new(5000), "{length}");
        }
    }

    #[test]
    fn bytes_belong_to_responses_in_their_order() {
        let workload = Workload::parse("0 1000\n0 1\n0 500\n").unwrap();
        let mut app = App::download(DownloadConfig::new(workload));
        let mut responses = Responses::default();
        while let Some(crate::Command::Request { id, size, .. }) = app.poll(Time::ZERO) {
            responses.expect(id, size);
        }
        // The second piece ends one response, has all of the next, and begins the third.
        for (ms, bytes) in [(10, 999), (20, 102), (30, 400)] {
            responses.take(&mut app, Time::from_millis(ms), Bytes::new(bytes));
        }
        assert!(responses.is_complete());
        let Outcome::Requests(records) = app.outcome(Time::from_secs(1)) else { panic!() };
        let times = |at: fn(&crate::RequestRecord) -> Option<Time>| {
            records.iter().map(|r| at(r).unwrap().as_millis()).collect::<Vec<_>>()
        };
        assert_eq!(times(|r| r.first_byte_at), [10, 20, 20]);
        assert_eq!(times(|r| r.completed_at), [20, 20, 30]);
    }
}

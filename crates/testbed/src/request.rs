//! What a client says to its server: a message of the length that the application gives it, with the size of the
//! response that it wants at its head.

use std::io::{self, Read};

use trimtab_units::Bytes;

/// Size of the response and length of the message: the least that a message can be.
const HEAD: usize = 16;

/// The message for a response of `size` bytes.
pub(crate) fn encode(size: Bytes, upload: Bytes) -> Vec<u8> {
    let length = usize::try_from(upload.get()).unwrap_or(usize::MAX).max(HEAD);
    let mut message = vec![0; length];
    message[..8].copy_from_slice(&size.get().to_be_bytes());
    message[8..HEAD].copy_from_slice(&(length as u64).to_be_bytes());
    message
}

/// Reads a message; the size of the response that it asks for.
pub(crate) fn read(from: &mut impl Read) -> io::Result<Bytes> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head)?;
    let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |n, &b| n << 8 | u64::from(b));
    let (size, length) = (number(&head[..8]), number(&head[8..]));
    let rest = length.saturating_sub(HEAD as u64);
    io::copy(&mut from.take(rest), &mut io::sink())?;
    Ok(Bytes::new(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_follow_each_other() {
        let mut wire = Vec::new();
        // One that is shorter than its head, one of the usual length, and one for bulk data.
        for (size, upload) in [(7, 1), (90_000, 200), (1_000_000_000_000_000, 17)] {
            wire.extend(encode(Bytes::new(size), Bytes::new(upload)));
        }
        assert_eq!(wire.len(), 16 + 200 + 17);
        let mut from = &wire[..];
        let sizes: Vec<u64> = std::iter::from_fn(|| read(&mut from).ok()).map(Bytes::get).collect();
        assert_eq!(sizes, [7, 90_000, 1_000_000_000_000_000]);
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
}

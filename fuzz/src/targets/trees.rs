//! Tree models: any bytes are one that decides in every state, or an error with one line to show.

use trimtab_cc::muses::{BINS, Counts, Factor, Past, SIGNALS, Trees};

/// Where the head of a file has its length and its checksum, and where what is summed up begins.
const LENGTH_AT: usize = 12;
const SUM_AT: usize = 16;
const BODY_AT: usize = 20;

pub(crate) fn target(bytes: &[u8]) {
    check(bytes);
    // A checksum is never met by chance: the same bytes with the right one.
    if bytes.len() > BODY_AT {
        let mut sealed = bytes.to_vec();
        sealed[LENGTH_AT..SUM_AT].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        let sum = crc32(&sealed[BODY_AT..]);
        sealed[SUM_AT..BODY_AT].copy_from_slice(&sum.to_le_bytes());
        check(&sealed);
    }
}

fn check(bytes: &[u8]) {
    match Trees::parse(bytes) {
        Ok(trees) => {
            assert!(trees.first() < trees.count() && trees.states() > 0);
            let (mut counts, mut past) = (Counts::default(), Past::default());
            for x in [i16::MIN, -1, 0, 1, 500, 4000, i16::MAX] {
                let state = [x; SIGNALS];
                let inputs = past.see(&state);
                for tree in 0..=trees.count() {
                    let factor = trees.decide(tree, &inputs);
                    assert!((Factor::MIN..=Factor::MAX).contains(&factor));
                }
                let segments = trees.segments(&state);
                assert!(segments.iter().all(|segment| *segment < BINS));
                counts.add(segments);
                assert!(trees.nearest(&counts) < trees.count());
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}

/// The checksum of ISO 3309.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (0..8)
            .fold(sum ^ u32::from(*byte), |s, _| (s >> 1) ^ (0xedb8_8320 & (s & 1).wrapping_neg()))
    };
    !bytes.iter().fold(!0, step)
}

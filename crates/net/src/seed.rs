//! Independent random generators from one seed.

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// What a generator is for. Each purpose has its own numbers, so switching one impairment on does not
/// change what another one does to the same packets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Loss = 1,
    Jitter = 2,
    Reorder = 3,
}

/// The generator of one purpose. The same on every machine.
pub(crate) fn generator(seed: u64, purpose: Purpose) -> Pcg64Mcg {
    // An odd multiplier keeps different seeds different; the seeding function then mixes all bits.
    Pcg64Mcg::seed_from_u64(seed ^ (purpose as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

//! The kernel's choice of an algorithm against the one in Rust, on random rules and sockets.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use std::net::IpAddr;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use trimtab_steer::safety::Share;

use crate::choices::{Asking, Choice, Choices, Gives};

const TABLES: u64 = 3000;
const SOCKETS: u32 = 100;
/// Few of each, so that rules and sockets meet.
const NAMES: [&str; 3] = ["trimtab_copa", "trimtab_cubic", "bbr"];
const ADDRESSES: [&str; 6] =
    ["10.1.2.3", "10.1.3.3", "::ffff:10.1.2.3", "2001:db8::1", "2001:db8:1::1", "::1"];

/// The place of what the kernel's side chooses.
fn kernels(table: &[u64], who: &Asking<'_>) -> Option<usize> {
    unsafe extern "C" {
        fn tt_host_choose(
            choices: *const u64,
            who: &[u64; 4],
            remote: &[u8; 16],
            cgroups: *const u64,
        ) -> u32;
    }
    let (family, remote) = match who.remote {
        None => (0, [0; 16]),
        Some(IpAddr::V4(a)) => (2, a.to_ipv6_mapped().octets()),
        Some(IpAddr::V6(a)) => (10, a.octets()),
    };
    let mut cgroups = vec![who.cgroups.len() as u64];
    cgroups.extend(who.cgroups);
    let who = [who.netns, u64::from(who.remote.is_none()), who.port.into(), family];
    // SAFETY: the table has the size and the alignment of C's, whose fields take any bytes; the
    // cgroups begin with their number; C keeps no pointer.
    let place = unsafe { tt_host_choose(table.as_ptr(), &who, &remote, cgroups.as_ptr()) };
    (place < 256).then_some(place as usize)
}

fn address(random: &mut Pcg64Mcg) -> IpAddr {
    ADDRESSES[random.random_range(0..ADDRESSES.len())].parse().expect("an address")
}

fn choice(random: &mut Pcg64Mcg) -> Choice {
    let some = |random: &mut Pcg64Mcg| random.random_bool(0.5);
    let first = random.random_range(1..6);
    let to = some(random).then(|| {
        let base = address(random).to_canonical();
        (base, random.random_range(0..=if base.is_ipv4() { 32 } else { 128 }))
    });
    Choice {
        netns: some(random).then(|| random.random_range(1..3)),
        cgroup: some(random).then(|| (random.random_range(1..4), random.random_range(0..3))),
        ports: (first, random.random_range(first..7)),
        to,
        gives: match random.random_range(0..10) {
            0 | 1 => Gives::Nothing,
            2 => Gives::Former,
            _ => Gives::Algorithm(NAMES[random.random_range(0..3)].to_owned()),
        },
    }
}

#[test]
fn the_hook_chooses_as_the_rules_say() {
    let (mut chosen, mut listeners, mut former) = (0, 0, 0);
    for seed in 0..TABLES {
        let random = &mut Pcg64Mcg::seed_from_u64(seed);
        let holdback = if random.random_bool(0.3) { "50%" } else { "0%" };
        // Some tables are longer than the kernel's.
        let length = if seed % 100 == 0 { 300 } else { random.random_range(0..12) };
        let choices = Choices {
            holdback: holdback.parse::<Share>().expect("a share"),
            list: (0..length).map(|_| choice(random)).collect(),
        };
        let bytes = choices.bytes().expect("names of the kernel");
        let words = bytes.as_chunks::<8>().0.iter();
        let table: Vec<u64> = words.map(|word| u64::from_ne_bytes(*word)).collect();
        for _ in 0..SOCKETS {
            let depth = random.random_range(0..4);
            let cgroups: Vec<u64> = (0..depth).map(|_| random.random_range(1..4)).collect();
            let who = Asking {
                netns: random.random_range(1..3),
                cgroups: &cgroups,
                port: random.random_range(0..8),
                remote: random.random_bool(0.7).then(|| address(random)),
            };
            let expected = choices.decide(&who);
            let place = kernels(&table, &who);
            let found = place.map(|place| &choices.list[place].gives);
            assert_eq!(found, expected, "seed {seed}: {who:?} {choices:?}");
            chosen += u64::from(found.is_some());
            listeners += u64::from(found.is_some() && who.remote.is_none());
            former += u64::from(found == Some(&Gives::Former));
        }
    }
    let sockets = TABLES * u64::from(SOCKETS);
    assert!(chosen * 10 > sockets && listeners * 100 > sockets, "{chosen}, {listeners}");
    assert!(former * 100 > sockets, "{former}");
}

//! The kernel's choice of an algorithm against the one in Rust, on random rules and sockets.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use std::net::IpAddr;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use trimtab_fleet::Interval;
use trimtab_fleet::experiment::{Schedule, ThreeArms, ThreeArmsSpec};
use trimtab_steer::safety::Share;
use trimtab_units::{Duration, Time};

use crate::arms::Arms;
use crate::choices::{Asking, Choice, Choices, Gives};
use crate::layout::NAME_SIZE;

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

/// The choices as the kernel's side has them.
fn table(choices: &Choices) -> Vec<u64> {
    let bytes = choices.bytes().expect("names of the kernel");
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
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
            arms: Arms::default(),
            list: (0..length).map(|_| choice(random)).collect(),
        };
        let table = table(&choices);
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

/// What the kernel's side says of a connection to this address, and of the copy of an algorithm.
fn kernels_arm(table: &[u64], remote: IpAddr, now: Time, name: &str) -> (bool, Option<String>) {
    unsafe extern "C" {
        fn tt_host_runs_former(choices: *const u64, remote: &[u8; 16], now_ns: u64) -> u32;
        fn tt_host_copy_of(choices: *const u64, name: &[u8; 16]) -> *const [u8; NAME_SIZE];
    }
    let mapped = match remote {
        IpAddr::V4(a) => a.to_ipv6_mapped().octets(),
        IpAddr::V6(a) => a.octets(),
    };
    let name = crate::assign::name_bytes(name).expect("a name of the kernel");
    // SAFETY: as in `kernels`; what C gives is null or points to a whole name in the table.
    let (former, copy) = unsafe {
        let former = tt_host_runs_former(table.as_ptr(), &mapped, now.as_nanos());
        (former, tt_host_copy_of(table.as_ptr(), &name).as_ref())
    };
    let text =
        |name: &[u8; NAME_SIZE]| String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
    (former != 0, copy.map(text))
}

/// A draw of a prefix's bytes is the same on both sides.
#[test]
fn the_hook_knows_whose_turn_it_is() {
    const PREFIXES: u32 = 10_000;
    let copies = [("cubic", "trimtab_cubic"), ("bbr", "trimtab_bbr")];
    let copies: Vec<_> = copies.map(|(of, copy)| (of.to_owned(), copy.to_owned())).into();
    let step = Duration::from_secs(5);
    let mut counts = [0; 2];
    for seed in 0..20 {
        let random = &mut Pcg64Mcg::seed_from_u64(seed);
        let spec = ThreeArmsSpec {
            start: Interval(random.random_range(20..1 << 20)),
            block: random.random_range(4..100),
            pairs: random.random_range(4..30),
            wash_out: 2,
            share: random.random_range(0.01..=0.5),
            schedule: if seed % 4 == 3 { Schedule::Together } else { Schedule::Each },
            seed: random.random(),
        };
        let plan = ThreeArms::new(spec).expect("a plan");
        let rollout = (seed % 3 == 2).then(|| Share::new(random.random_range(0.0..=1.0)));
        let (first, last) = (spec.start.start(step), plan.end().start(step));
        let plan = (seed != 5).then_some(plan);
        let arms = Arms { rollout, plan, step, copies: copies.clone() };
        let choices = Choices { arms, ..Choices::default() };
        let table = table(&choices);
        let (before, after) = (first - step * 20, last + step * 20);
        for i in 0..PREFIXES {
            let base = if i % 2 == 0 {
                IpAddr::from((random.random::<u32>() & 0xffff_ff00).to_be_bytes())
            } else {
                IpAddr::from((random.random::<u128>() >> 80 << 80).to_be_bytes())
            };
            // Before it begins, and after its end, too.
            let now = random.random_range(before.as_nanos()..after.as_nanos());
            let now = Time::from_nanos(now);
            let expected = choices.arms.runs_former(base, now);
            let (former, copy) = kernels_arm(&table, base, now, "cubic");
            assert_eq!(former, expected, "seed {seed}: {base} at {now:?}: {spec:?} {rollout:?}");
            assert_eq!(copy.as_deref(), Some("trimtab_cubic"));
            counts[usize::from(former)] += 1;
            // All of a network are on one side.
            let other = match base {
                IpAddr::V4(a) => IpAddr::from((a.to_bits() | 0xc8).to_be_bytes()),
                IpAddr::V6(a) => IpAddr::from((a.to_bits() | 0xffff).to_be_bytes()),
            };
            assert_eq!(kernels_arm(&table, other, now, "reno"), (expected, None));
        }
    }
    assert!(counts.iter().all(|count| *count > PREFIXES), "{counts:?}");
}

//! A connection under Mortise, without std: what a QUIC stack on a microcontroller would link.
#![no_std]

use core::alloc::{GlobalAlloc, Layout};

use trimtab_cc::Config;
use trimtab_cc::transport::{Packet, Tracker};
use trimtab_qoe::{Factors, Model};
use trimtab_steer::{Driver, HostView, Mortise, MortiseConfig, Steer};
use trimtab_units::{Bytes, Duration, Time};

const MSS: Bytes = Bytes::new(1500);
const RTT: Duration = Duration::from_millis(20);
/// What a link of 12 Mbit/s sends in a round trip.
const PACKETS: u64 = 20;

/// So many round trips of a download over a link of 12 Mbit/s whose queue holds what the window is
/// above one bandwidth-delay product. Gives the delta of Copa at their end.
#[unsafe(no_mangle)]
pub extern "C" fn trimtab_steer_delta(rounds: u32) -> f64 {
    let mut steering = Mortise::new(MortiseConfig::new(Model::download()));
    let mut driver = Driver::from(Mortise::algorithm().build(&Config::default()));
    let mut tracker = Tracker::new();
    let mut now = Time::ZERO;
    driver.on_established(RTT);
    driver.report_from(now, steering.interval(RTT), steering.needs());
    for _ in 0..rounds {
        let rtt = round_trip(&mut driver, &mut tracker, now);
        now += rtt;
        driver.on_timer(now);
        let view = HostView {
            srtt: rtt,
            min_rtt: RTT,
            inflight: tracker.inflight(),
            mss: MSS,
            unsent: Bytes::ZERO,
            factors: Factors::new().with_request(Bytes::new(1_000_000)),
        };
        let Some(report) = driver.report(now, view) else { continue };
        if let Some(action) = steering.on_report(&report)
            && driver.act(now, &action).is_err()
        {
            return f64::NAN;
        }
        driver.report_after(now, steering.interval(report.srtt));
    }
    steering.applied_delta()
}

/// A window leaves at once and is acknowledged packet by packet, as the link sends it. Gives the
/// round-trip time of the last packet.
fn round_trip(driver: &mut Driver, tracker: &mut Tracker, now: Time) -> Duration {
    let window = (driver.window() / MSS.get()).get().min(64);
    let mut sent: [Option<Packet>; 64] = [None; 64];
    for slot in &mut sent[..window as usize] {
        let (packet, event) = tracker.on_sent(now, MSS);
        driver.on_sent(&event);
        *slot = Some(packet);
    }
    tracker.on_window_limited();
    let mut rtt = RTT;
    for (packet, number) in sent.iter_mut().flatten().zip(1u64..) {
        rtt = RTT.max(RTT * number / PACKETS);
        tracker.on_acked(packet);
        if let Some(ack) = tracker.end_ack(now + rtt, rtt, RTT) {
            driver.on_ack(&ack);
        }
    }
    rtt
}

unsafe extern "C" {
    fn aligned_alloc(align: usize, size: usize) -> *mut u8;
    fn free(place: *mut u8);
}

/// The C library's.
struct System;

// SAFETY: what C gives is as large and as aligned as was asked for, or null.
unsafe impl GlobalAlloc for System {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: a layout's alignment is a power of two; C wants a multiple of it.
        unsafe { aligned_alloc(layout.align(), layout.pad_to_align().size()) }
    }

    unsafe fn dealloc(&self, place: *mut u8, _: Layout) {
        // SAFETY: it comes from `alloc`.
        unsafe { free(place) }
    }
}

#[global_allocator]
static ALLOCATOR: System = System;

#[panic_handler]
fn stop(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

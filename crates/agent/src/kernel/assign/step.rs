//! What is to be done about a socket, by what the rules say of it and what it runs.

use std::net::SocketAddr;

use trimtab_kernel::{Algorithm, Given, Order, Socket};

use super::name_of;
use crate::daemon::logging;

/// What the rules say of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// It gets this algorithm, by the rule in this place: the rule's, or one of a comparison.
    Give(Algorithm, usize),
    /// It stays as it is, for comparison.
    Leave,
    /// No rule gives it an algorithm.
    Nothing,
}

/// Addresses of a connection, local and remote, and its network namespace.
pub(crate) type Addresses = (SocketAddr, SocketAddr, u64);

/// What is to be done about a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It runs what its rule says.
    Runs,
    /// It gets this.
    Give(String),
    /// It goes back to this, which it ran before.
    Back(String),
    /// Somebody else chose what it runs.
    ByHand,
    /// It is none of ours.
    Nothing,
}

/// What is to be done about a socket, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) step: Step,
    /// The rule, and its algorithm.
    pub(super) rule: Option<(usize, Algorithm)>,
    /// Whether it runs something else than it was given because we let that take over.
    pub(super) switched: bool,
}

/// What is to be done about a socket. A choice by hand is one after ours, or one of the program
/// itself: the kernel keeps that a program has chosen, and we keep what we gave. When we let
/// another algorithm take over (`switched`), it was neither.
pub(super) fn step(socket: &Socket, wanted: &Wanted, switched: bool, suffix: &str) -> Step {
    let other = |given: &Given| given.algorithm != socket.algorithm;
    let by_hand = !switched && socket.given.as_ref().map_or(socket.chosen, other);
    match (wanted, &socket.given) {
        (Wanted::Give(algorithm, _), _) => {
            let name = name_of(suffix, *algorithm);
            match (name == socket.algorithm, by_hand) {
                (true, _) => Step::Runs,
                (false, true) => Step::ByHand,
                (false, false) => Step::Give(name),
            }
        }
        (Wanted::Nothing, Some(given)) if !by_hand && given.algorithm != given.former => {
            Step::Back(given.former.clone())
        }
        (Wanted::Nothing | Wanted::Leave, _) => Step::Nothing,
    }
}

pub(super) fn orders(sockets: &[Socket], steps: &[Judged]) -> Vec<Order> {
    let order = |(socket, judged): (&Socket, &Judged)| match &judged.step {
        Step::Give(to) | Step::Back(to) => {
            Some(Order { cookie: socket.cookie, from: socket.algorithm.clone(), to: to.clone() })
        }
        Step::Runs | Step::ByHand | Step::Nothing => None,
    };
    sockets.iter().zip(steps).filter_map(order).collect()
}

/// What is reported of a socket once. A connection that somebody took by hand is reported when it
/// leaves the datapath.
pub(super) fn note(socket: &Socket, step: &Step, applies: bool) -> Option<String> {
    let who = label(socket);
    match step {
        Step::ByHand if socket.given.is_some() && socket.remote.is_none() => {
            Some(format!("{who} was given {} by hand, and is left to it", socket.algorithm))
        }
        Step::Give(to) | Step::Back(to) if !applies => {
            Some(format!("{who} runs {}, and would get {to}", socket.algorithm))
        }
        _ => None,
    }
}

pub(super) fn label(socket: &Socket) -> String {
    match socket.remote {
        Some(remote) => {
            let (network, port) = (logging::network(remote.ip()), socket.local.port());
            format!("the connection from {network} to port {port}")
        }
        None => format!("the socket that listens at {}", socket.local),
    }
}

pub(super) fn addresses(socket: &Socket) -> Option<Addresses> {
    Some((socket.local, socket.remote?, socket.netns_cookie))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(algorithm: &str, chosen: bool, given: Option<(&str, &str)>) -> Socket {
        let given = given.map(|(algorithm, former)| Given {
            algorithm: algorithm.to_owned(),
            former: former.to_owned(),
        });
        Socket {
            cookie: 1,
            netns_cookie: 1,
            cgroup: None,
            local: "192.0.2.1:443".parse().unwrap(),
            remote: None,
            algorithm: algorithm.to_owned(),
            chosen,
            given,
            outcome: None,
        }
    }

    #[test]
    fn nobodys_choice_is_overruled_and_what_was_before_comes_back() {
        let give = Wanted::Give(Algorithm::Copa, 0);
        let (copa, cubic) = ("trimtab_copa", "cubic");
        let to = |name: &str| Step::Give(name.to_owned());
        for (algorithm, chosen, given, wanted, expected) in [
            (cubic, false, None, &give, to(copa)),
            (copa, false, None, &give, Step::Runs),
            (copa, true, Some((copa, cubic)), &give, Step::Runs),
            // The program chose before us; somebody chose after us.
            ("bbr", true, None, &give, Step::ByHand),
            ("bbr", true, Some((copa, cubic)), &give, Step::ByHand),
            // It was ours, went back, and a rule asks for it again; or for another one.
            (cubic, true, Some((cubic, cubic)), &give, to(copa)),
            (
                copa,
                true,
                Some((copa, cubic)),
                &Wanted::Give(Algorithm::Cubic, 0),
                to("trimtab_cubic"),
            ),
            // No rule any more.
            (copa, true, Some((copa, cubic)), &Wanted::Nothing, Step::Back(cubic.to_owned())),
            ("bbr", true, Some((copa, cubic)), &Wanted::Nothing, Step::Nothing),
            (copa, true, None, &Wanted::Nothing, Step::Nothing),
            (copa, true, Some((copa, cubic)), &Wanted::Leave, Step::Nothing),
            (cubic, false, None, &Wanted::Leave, Step::Nothing),
        ] {
            let it = socket(algorithm, chosen, given);
            assert_eq!(step(&it, wanted, false, ""), expected, "{it:?} {wanted:?}");
        }
    }

    /// It was given Copa, and we let CUBIC take over; or the system's default was Copa.
    #[test]
    fn what_we_let_take_over_is_nobodys_choice() {
        let give = Wanted::Give(Algorithm::Copa, 0);
        let given = socket("trimtab_cubic", true, Some(("trimtab_copa", "reno")));
        assert_eq!(step(&given, &Wanted::Nothing, true, ""), Step::Back("reno".to_owned()));
        assert_eq!(step(&given, &Wanted::Nothing, false, ""), Step::Nothing);
        let own = socket("trimtab_cubic", true, None);
        assert_eq!(step(&own, &give, true, ""), Step::Give("trimtab_copa".to_owned()));
        assert_eq!(step(&own, &give, false, ""), Step::ByHand);
    }

    #[test]
    fn advice_is_told_and_a_choice_by_hand_too() {
        let it = socket("reno", true, Some(("trimtab_copa", "cubic")));
        let told = note(&it, &Step::ByHand, true).unwrap();
        assert_eq!(
            told,
            "the socket that listens at 192.0.2.1:443 was given reno by hand, and is left to it"
        );
        let told = note(&it, &Step::Give("trimtab_copa".to_owned()), false).unwrap();
        assert!(told.ends_with("runs reno, and would get trimtab_copa"), "{told}");
        assert_eq!(note(&it, &Step::Give("trimtab_copa".to_owned()), true), None);
    }
}

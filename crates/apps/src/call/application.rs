//! What applications that are one call have in common as [`Application`]s.

use trimtab_units::Time;

use super::Call;
use crate::{AppFactors, Application, Command, Concurrency, Outcome, RequestId};

/// An application that is one call.
pub trait OneCall {
    /// The call.
    fn of(&self) -> &Call;
    /// The same, to go on with it.
    fn of_mut(&mut self) -> &mut Call;
}

/// It makes no requests: its transport takes the call and carries that.
impl<A: OneCall> Application for A {
    fn poll(&mut self, now: Time) -> Option<Command> {
        self.of_mut().begin(now);
        None
    }

    fn next_timer(&self) -> Option<Time> {
        None
    }

    fn on_complete(&mut self, _now: Time, _id: RequestId) {}

    fn is_finished(&self) -> bool {
        self.of().is_over()
    }

    fn factors(&self, _now: Time) -> AppFactors {
        self.of().factors()
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Streams
    }

    fn outcome(&self, now: Time) -> Outcome {
        Outcome::Call(self.of().record(now))
    }

    fn call(&self) -> Option<&Call> {
        Some(self.of())
    }

    fn call_mut(&mut self) -> Option<&mut Call> {
        Some(self.of_mut())
    }
}

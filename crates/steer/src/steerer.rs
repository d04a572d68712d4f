//! The table of steerings. A report takes no virtual call.

use alloc::boxed::Box;

use trimtab_cc::Spec;
use trimtab_qoe::Model;
use trimtab_units::Duration;

use crate::distill::Distill;
use crate::select::Selector;
use crate::{
    Action, Both, Insight, Mortise, Needs, PaperMortise, Reason, Report, Schedule, Steer, Tuner,
};

/// Each steering is `NAME(TYPE),`. Large ones are boxed: a connection without steering has room for
/// the smallest.
macro_rules! steerers {
    ($($(#[$about:meta])* $Name:ident($Type:ty),)*) => {
        /// Any of the steerings.
        #[derive(Clone, Debug)]
        pub enum Steerer {
            $($(#[$about])* $Name($Type),)*
        }

        $(
            impl From<$Type> for Steerer {
                fn from(steering: $Type) -> Self {
                    Self::$Name(steering)
                }
            }
        )*

        impl Steer for Steerer {
            fn interval(&self, srtt: Duration) -> Duration {
                match self { $(Self::$Name(steering) => steering.interval(srtt),)* }
            }

            fn needs(&self) -> Needs {
                match self { $(Self::$Name(steering) => steering.needs(),)* }
            }

            fn on_report(&mut self, report: &Report) -> Option<Action> {
                match self { $(Self::$Name(steering) => steering.on_report(report),)* }
            }

            fn reason(&self, action: &Action) -> Option<Reason> {
                match self { $(Self::$Name(steering) => steering.reason(action),)* }
            }

            fn fallback(&self) -> Option<Spec> {
                match self { $(Self::$Name(steering) => steering.fallback(),)* }
            }

            fn insight(&self) -> Insight {
                match self { $(Self::$Name(steering) => steering.insight(),)* }
            }

            fn on_model(&mut self, model: &Model) {
                match self { $(Self::$Name(steering) => steering.on_model(model),)* }
            }

            fn suited(&self) -> Option<Spec> {
                match self { $(Self::$Name(steering) => steering.suited(),)* }
            }

            fn begin_with(&mut self, spec: Spec) {
                match self { $(Self::$Name(steering) => steering.begin_with(spec),)* }
            }
        }
    };
}

steerers! {
    /// Mortise.
    Mortise(Box<Mortise>),
    /// Mortise as it was published.
    Paper(Box<PaperMortise>),
    /// Mortise for another algorithm than Copa.
    Tuner(Box<Tuner>),
    /// Algorithms in turn.
    Schedule(Schedule),
    /// The algorithm that suits best.
    Select(Box<Selector>),
    /// The algorithm that suits best, and Mortise while it is Copa.
    Both(Box<Both>),
    /// The tree of Muses that suits best.
    Distill(Distill),
}

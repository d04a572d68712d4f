//! What decides how a flow sends, and the governor that does it.

use trimtab_cc::migrate::Switcher;
use trimtab_cc::resume::Resumption;
use trimtab_cc::{Config, Spec};
use trimtab_steer::muses::Policy;
use trimtab_steer::rival::Rival;
use trimtab_steer::{Driver, Steer, Steerer};

use crate::governor::Governor;
use crate::omniscient::Omniscient;
use crate::outside::{Dial, Outside};

/// What decides how a flow sends.
#[derive(Clone, Debug)]
pub enum Control {
    /// A congestion control algorithm, perhaps steered.
    Algorithm {
        /// The algorithm and its settings.
        spec: Spec,
        /// What steers it; `None` leaves it alone.
        steerer: Option<Steerer>,
    },
    /// Muses.
    Muses {
        /// What decides.
        policy: Policy,
        /// What takes over when the policy's guard raises an alarm; `None` lets the policy go on.
        safe: Option<Spec>,
    },
    /// A rival that goes by a file.
    Rival(Rival),
    /// A sender that sees the links: a bound that no real one reaches.
    Omniscient,
    /// Somebody outside, who begins with this and sets it by [`World::set`](crate::World::set).
    Outside(Dial),
}

impl Control {
    /// The governor of a new flow.
    pub(crate) fn governor(&self, limits: &Config, resume: Option<Resumption>) -> Governor {
        let driver = match self {
            Self::Algorithm { spec, steerer } => {
                let is_switching = steerer.as_ref().is_some_and(|s| s.needs().switching);
                if is_switching {
                    Driver::from(Switcher::new(*spec, limits))
                } else {
                    Driver::from(spec.build(limits))
                }
            }
            Self::Muses { policy, safe } => policy.driver(*safe, limits),
            Self::Rival(rival) => Driver::from(rival.build(limits)),
            Self::Omniscient => return Governor::Seeing(Omniscient::default()),
            Self::Outside(dial) => return Governor::Outside(Outside::new(*dial)),
        };
        Governor::Driven(match resume {
            Some(how) => driver.resuming(limits, how),
            None => driver,
        })
    }

    /// What steers the flow.
    pub(crate) fn steerer(&self) -> Option<Steerer> {
        match self {
            Self::Algorithm { steerer, .. } => steerer.clone(),
            Self::Muses { .. } | Self::Rival(_) | Self::Omniscient | Self::Outside(_) => None,
        }
    }
}

//! What counts on a path, as one number.

/// What is to be large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Utility {
    /// Throughput / delay (Kleinrock's power).
    Power,
    /// Throughput · (1 − loss) / delay (the table's `Power_V`).
    PowerLoss,
    /// Vivace's utility of rate, growth of delay and loss (NSDI 2018 §3.1).
    Vivace,
    /// Throughput.
    Throughput,
}

/// Exponent of the rate, and the prices of growing delay and of loss, per Mbit/s (Vivace §3.1).
const VIVACE: (f64, f64, f64) = (0.9, 900.0, 11.35);

impl Utility {
    /// All of them, by the names of the command line.
    pub const ALL: [(&'static str, Self); 4] = [
        ("power", Self::Power),
        ("power-loss", Self::PowerLoss),
        ("vivace", Self::Vivace),
        ("throughput", Self::Throughput),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, utility)| *utility == self).map_or("", |(name, _)| name)
    }

    /// The utility of a path with this throughput in Mbit/s, delay in s, growth of the delay in s/s
    /// (below 0 where it falls, which the table's formula rewards), and loss, 0 to 1.
    pub fn of(self, throughput: f64, delay: f64, growth: f64, loss: f64) -> f64 {
        let power = if delay > 0.0 { throughput / delay } else { 0.0 };
        match self {
            Self::Power => power,
            Self::PowerLoss => power * (1.0 - loss),
            Self::Vivace => {
                let (exponent, growing, losing) = VIVACE;
                libm::pow(throughput.max(0.0), exponent)
                    - growing * throughput * growth
                    - losing * throughput * loss
            }
            Self::Throughput => throughput,
        }
    }
}

//! Arms for Python: which algorithm is best for a destination, by what its connections got.

use pyo3::prelude::*;
use trimtab_steer::customize::{Arms, ArmsPrior};

use crate::refuse;

/// The arms of one destination.
#[pyclass(name = "Arms", module = "trimtab._native")]
pub(crate) struct PyArms(Arms);

#[pymethods]
impl PyArms {
    /// Arms with these worths expected of them, and how these vary together, row by row.
    #[new]
    #[pyo3(signature = (worths, covariance, *, noise, drift))]
    fn new(worths: Vec<f64>, covariance: Vec<f64>, noise: f64, drift: f64) -> PyResult<Self> {
        Ok(Self(Arms::new(&ArmsPrior { worths, covariance, noise, drift }).map_err(refuse)?))
    }

    /// Takes the reward of a connection that ran this arm.
    fn observe(&mut self, arm: usize, reward: f64) -> PyResult<()> {
        if arm >= self.0.count() {
            return Err(refuse(format!("arm {arm}: there are {}", self.0.count())));
        }
        self.0.observe(arm, reward);
        Ok(())
    }

    /// The arm of the highest expected worth.
    fn best(&self) -> usize {
        self.0.best()
    }

    /// Each arm as often as it may be best; the same draw gives the same arm.
    fn draw(&self, draw: u64) -> usize {
        self.0.draw(draw)
    }

    /// Mean and standard deviation of what each arm is worth compared with the mean of all.
    fn worths(&self) -> Vec<(f64, f64)> {
        self.0.worths().iter().map(|worth| (worth.mean, worth.deviation)).collect()
    }
}

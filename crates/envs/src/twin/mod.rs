//! A digital twin: worlds of the simulator that may be the one that a connection runs in.
//!
//! It is a particle filter. A particle is a path: its rate and how that varies, round-trip time, buffer,
//! loss and rivals. Each runs what really ran, and those whose states are like the real ones are kept.
//! What each choice costs is then tried on forks of them. The twin sees what a policy sees, one state a
//! period, and knows which requests were made. What it does not see is drawn from a course to learn on.
//!
//! What to read first: Gilks and Berzuini, "Following a moving target: Monte Carlo inference for dynamic
//! Bayesian models", J. R. Statist. Soc. B 63, 2001, §2 and §3 (resample, then move). There the
//! likelihood is known; here a state is compared with that of one run.

mod hypothesis;
mod likeness;

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use trimtab_steer::select::State;

use crate::course::Course;
use crate::episode::{Asked, Episode, Rules};
use crate::future::mixed;
use hypothesis::Hypothesis;
use likeness::Likeness;

/// Paths that are tried after the first period for each that is kept.
const TRIED: usize = 16;
/// How much what was seen a period ago counts, of what is seen now: a path may change.
const MEMORY: f64 = 0.8;
/// One in so many moves draws a path anew, and does not change a known one a little.
const ANEW: f64 = 0.2;

/// What particles are drawn from and compared by.
#[derive(Clone, Debug)]
pub struct Prior {
    course: Arc<Course>,
    likeness: Likeness,
}

impl Prior {
    /// Paths of a course; how alike states are is measured on its first `connections`.
    pub fn new(course: Arc<Course>, connections: u64) -> Self {
        let likeness = Likeness::fit(&course, connections);
        Self { course, likeness }
    }
}

#[derive(Clone, Debug)]
struct Particle {
    path: Hypothesis,
    world: Episode,
    /// The logarithm of the likelihood of what was seen so far.
    score: f64,
}

/// The worlds that one connection may run in, equally likely.
#[derive(Clone, Debug)]
pub struct Twin {
    prior: Arc<Prior>,
    rules: Arc<Rules>,
    asked: Asked,
    /// What ran so far, and the state at the end of each period.
    ran: Vec<usize>,
    seen: Vec<State>,
    particles: Vec<Particle>,
    random: Pcg64Mcg,
}

impl Twin {
    /// Of a connection whose first period has run. Of `real` it sees the state and which algorithm
    /// runs, now and in [`observe`](Self::observe). The requests to come it has too, but
    /// [`worlds`](Self::worlds) draw them anew.
    ///
    /// # Panics
    /// There are no particles.
    pub fn new(prior: Arc<Prior>, real: &Episode, particles: usize, seed: u64) -> Self {
        assert!(particles > 0, "a twin without worlds");
        let mut twin = Self {
            prior,
            rules: real.rules().clone(),
            asked: real.asked(),
            ran: vec![real.current()],
            seen: vec![real.state()],
            particles: Vec::new(),
            random: Pcg64Mcg::seed_from_u64(seed),
        };
        let drawn: Vec<Particle> = (0..particles * TRIED).map(|_| twin.drawn()).collect();
        let scores: Vec<f64> = drawn.iter().map(|particle| particle.score).collect();
        twin.particles = twin.resampled(&drawn, &scores, particles);
        twin
    }

    /// Takes in a period of the real connection.
    pub fn observe(&mut self, real: &Episode) {
        self.ran.push(real.current());
        self.seen.push(real.state());
        let choice = real.current();
        let mut particles = std::mem::take(&mut self.particles);
        let gained: Vec<f64> = particles
            .iter_mut()
            .map(|particle| {
                particle.world.step(choice);
                let before = particle.score;
                let alike = self.prior.likeness.of(&real.state(), &particle.world.state());
                particle.score = MEMORY * before + alike;
                particle.score - before
            })
            .collect();
        self.particles = self.resampled(&particles, &gained, particles.len());
        self.move_some();
    }

    /// A path of the prior, its rate and round-trip time corrected once, if that is better.
    fn drawn(&mut self) -> Particle {
        let path = Hypothesis::drawn(&self.prior.course, &self.seen[0], &mut self.random);
        let first = self.replayed(path);
        let corrected = first.path.corrected(&self.seen[0], &first.world.state());
        match corrected.map(|path| self.replayed(path)) {
            Some(second) if second.score > first.score => second,
            _ => first,
        }
    }

    /// Runs on a path what ran so far.
    fn replayed(&self, path: Hypothesis) -> Particle {
        let mut world = Episode::new(self.rules.clone(), &path.draw(self.asked, self.ran[0]));
        let alike = |world: &Episode, seen| self.prior.likeness.of(seen, &world.state());
        let mut score = alike(&world, &self.seen[0]);
        for (choice, seen) in self.ran.iter().zip(&self.seen).skip(1) {
            world.step(*choice);
            score = MEMORY * score + alike(&world, seen);
        }
        Particle { path, world, score }
    }

    /// Systematic resampling by the logarithms of weights. Of a particle that is taken more than
    /// once, the copies go on by other luck.
    fn resampled(&mut self, of: &[Particle], logs: &[f64], count: usize) -> Vec<Particle> {
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logs.iter().map(|log| libm::exp(log - most)).collect();
        let step = weights.iter().sum::<f64>() / count as f64;
        let mut at = step * self.random.random::<f64>();
        let mut taken = Vec::with_capacity(count);
        let mut passed = 0.0;
        for (i, (particle, weight)) in of.iter().zip(weights).enumerate() {
            passed += weight;
            let is_last = i + 1 == of.len();
            let mut copies = 0;
            while taken.len() < count && (at < passed || is_last) {
                let mut copy = particle.clone();
                if copies > 0 {
                    copy.world.redraw_path(self.random.random());
                }
                taken.push(copy);
                copies += 1;
                at += step;
            }
        }
        taken
    }

    /// Moves each particle to a path nearby, or to one that is drawn anew, if what was seen is as
    /// likely there (Metropolis and Hastings).
    fn move_some(&mut self) {
        for i in 0..self.particles.len() {
            let to = if self.random.random::<f64>() < ANEW {
                let last = self.seen.len() - 1;
                Hypothesis::drawn(&self.prior.course, &self.seen[last], &mut self.random)
            } else {
                self.particles[i].path.nearby(&self.prior.course, &mut self.random)
            };
            let moved = self.replayed(to);
            let accepted = libm::exp(moved.score - self.particles[i].score);
            if self.random.random::<f64>() < accepted {
                self.particles[i] = moved;
            }
        }
    }

    /// A fork of each world with a future of its own, drawn by `seed`, for choices to be tried on.
    pub fn worlds(&self, seed: u64) -> impl Iterator<Item = Episode> {
        let fork = move |(i, particle): (usize, &Particle)| {
            particle.world.redrawn(mixed(seed, i as u64 + 1))
        };
        self.particles.iter().enumerate().map(fork)
    }
}

#[cfg(test)]
mod tests;

//! What was sent, by number, for as long as it may be asked about.

use std::collections::VecDeque;

/// Items under consecutive numbers, of which the oldest are forgotten.
#[derive(Clone, Debug)]
pub(super) struct History<T> {
    first: u64,
    items: VecDeque<T>,
    most: usize,
}

impl<T> History<T> {
    /// It holds the newest `most`.
    pub(super) fn new(most: usize) -> Self {
        Self { first: 0, items: VecDeque::new(), most }
    }

    /// Adds an item; gives its number.
    pub(super) fn push(&mut self, item: T) -> u64 {
        if self.items.len() == self.most {
            self.items.pop_front();
            self.first += 1;
        }
        self.items.push_back(item);
        self.end() - 1
    }

    /// The number of the oldest.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The number that the next one gets.
    pub(super) fn end(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    pub(super) fn get(&self, number: u64) -> Option<&T> {
        self.items.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.items.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut history = History::new(3);
        let numbers: Vec<u64> = "abcde".chars().map(|c| history.push(c)).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        let held: Vec<_> = (0..6).map(|n| history.get(n).copied()).collect();
        assert_eq!(held, [None, None, Some('c'), Some('d'), Some('e'), None]);
        assert_eq!((history.first(), history.end()), (2, 5));
    }
}

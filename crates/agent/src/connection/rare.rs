//! What most connections have as it is at first, which then takes a word and no more.

/// A value of which the first state takes no memory of its own.
#[derive(Clone, Debug)]
pub(crate) struct Rare<T>(Option<Box<T>>);

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Default> Rare<T> {
    /// The value; `None` where it is as at first.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }

    /// The value, to be changed where it is not as at first.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// The value, to be changed.
    pub(crate) fn make(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }

    /// It is as at first again.
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }
}

impl<T: Default + PartialEq> Rare<T> {
    /// Gives back the memory where the value is as at first.
    pub(crate) fn shrink(&mut self) {
        self.0.take_if(|value| **value == T::default());
    }
}

impl<T> From<T> for Rare<T> {
    fn from(value: T) -> Self {
        Self(Some(Box::new(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_as_at_first_takes_a_word() {
        let mut rare = Rare::<[u64; 8]>::default();
        assert_eq!(size_of_val(&rare), size_of::<usize>());
        assert!(rare.get().is_none());
        rare.make()[3] = 7;
        rare.shrink();
        assert_eq!(rare.get().map(|value| value[3]), Some(7));
        rare.make()[3] = 0;
        rare.shrink();
        assert!(rare.get().is_none());
    }
}

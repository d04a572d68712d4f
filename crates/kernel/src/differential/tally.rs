//! Counts that add up over sequences.

/// What adds up.
pub(super) trait Count {
    fn add(&mut self, other: &Self);
}

impl Count for u64 {
    fn add(&mut self, other: &Self) {
        *self += other;
    }
}

impl Count for f64 {
    fn add(&mut self, other: &Self) {
        *self += other;
    }
}

impl<T: Count, const N: usize> Count for [T; N] {
    fn add(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(sum, one)| sum.add(one));
    }
}

/// A struct of counts that adds up field by field.
macro_rules! tally {
    ($(#[$about:meta])* $vis:vis struct $name:ident {
        $($(#[$doc:meta])* $seen:vis $field:ident: $count:ty,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default)]
        $vis struct $name {
            $($(#[$doc])* $seen $field: $count,)*
        }

        impl $name {
            $vis fn add(&mut self, other: &Self) {
                $($crate::differential::tally::Count::add(&mut self.$field, &other.$field);)*
            }
        }
    };
}

pub(super) use tally;

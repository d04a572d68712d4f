//! The file of the operators' orders: any text is orders that are the same when they are written and
//! read again, or an error with one line to show.

use trimtab_agent::{HoldStatus, Target, fuzzing};

/// The clock of the file counts seconds since 1970, which an `f64` has to a quarter of a microsecond.
fn same(a: &HoldStatus, b: &HoldStatus) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 + 1e-9 * a.abs();
    let left = match (a.left_s, b.left_s) {
        (Some(a), Some(b)) => near(a, b),
        (a, b) => a == b,
    };
    let named = (a.held, &a.target, &a.by) == (b.held, &b.target, &b.by);
    named && left && near(a.for_s, b.for_s)
}

pub(crate) fn target(text: &str) {
match fuzzing::orders(text) {
    Ok((orders, written)) => {
        let (again, _) = fuzzing::orders(&written).expect("its own file");
        assert_eq!(orders.len(), again.len(), "{written}");
        for (order, again) in orders.iter().zip(&again) {
            assert!(!matches!(order.target, Target::Flow(_)), "{order:?}");
            assert!(order.for_s >= 0.0 && order.left_s.is_none_or(|left| left >= 0.0));
            assert!(same(order, again), "{order:?} is {again:?} when it is read again");
        }
    }
    Err(error) => assert!(!error.contains('\n'), "{error}"),
}
}

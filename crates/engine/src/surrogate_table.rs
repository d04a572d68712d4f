//! What people see on a terminal of a surrogate that was fitted.

use std::fmt::Write as _;

use trimtab_fleet::Prediction;
use trimtab_fleet_client::SurrogateBody;
use trimtab_fleet_client::experiment::Effect;

use crate::tables::{finish, number, short, table};

/// The line for the service's file, and how well it predicts.
pub fn fit_surrogate_text(body: &SurrogateBody) -> String {
    let SurrogateBody { service, fit } = body;
    let mut text = format!(
        "{service}: fitted to {} intervals with a reward, of {} aggregates; write into its file:\n\n\
         surrogate = \"{}\"\n\n",
        fit.intervals, fit.aggregates, fit.surrogate
    );
    let _ = writeln!(
        text,
        "On {} later intervals, each predicted by one of {} fits to other aggregates and earlier \
         intervals,\nwithin each aggregate and context:\n",
        fit.held_out, fit.fits
    );
    let mut rows = table(["", "R²", "RANK CORRELATION"], &[1, 2]);
    let mut row = |name: &str, of: Option<Prediction>| {
        let r_squared = number(of.map(|of| of.r_squared));
        rows.add_row([name.to_owned(), r_squared, number(of.map(|of| of.rank_correlation))]);
    };
    row("fitted", Some(fit.fitted));
    if let Some(present) = &fit.present {
        row(&format!("present: {}", present.formula), present.prediction);
    }
    text.push_str(&finish(&rows));
    let Effect { value, low, high } = fit.gain;
    let than = if fit.present.is_some() { "" } else { ", from nothing" };
    let _ = writeln!(text, "\ngain in R²{than}: {value:+.4} (95%: {low:+.4} to {high:+.4})\n");
    let mut rows = table(["STATISTIC", "COEFFICIENT", "95% FROM", "TO", "IN FITS"], &[1, 2, 3, 4]);
    for term in &fit.terms {
        let Effect { value, low, high } = term.coefficient;
        let [value, low, high] = [value, low, high].map(short);
        let chosen = format!("{} of {}", term.chosen, fit.fits);
        rows.add_row([term.statistic.clone(), value, low, high, chosen]);
    }
    text.push_str(&finish(&rows));
    let _ = writeln!(text, "\ntried: {}", fit.candidates.join(", "));
    for left in &fit.unsuitable {
        let _ = writeln!(text, "not tried: {}, since {}", left.statistic, left.why);
    }
    if !fit.stands_in {
        text.push_str(
            "it explains less than a quarter of the reward: where rewards come now and then, the \
             engine lets it stand in for none\n",
        );
    }
    text
}

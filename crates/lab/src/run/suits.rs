//! Which QoE models suit which application: those by which it can be scored.
//!
//! An application is scored from what its user went through (`score.rs`). A model that reads what no
//! unit of the application has scores nothing, and one that the application is not scored by changes
//! nothing: both are mistakes, and said before anything runs.

use trimtab_qoe::{Factor, Model};

use crate::scenario::{AppKind, AppSettings};

/// The factors that a unit of the application has when it is scored.
const fn known(kind: AppKind) -> &'static [Factor] {
    match kind {
        AppKind::Download | AppKind::Web => &[Factor::Request, Factor::MeanResponse],
        AppKind::Vod => &[Factor::Chunk],
        AppKind::Bulk => &[],
    }
}

/// The built-in models that suit the application.
const fn names(kind: AppKind) -> &'static [&'static str] {
    match kind {
        AppKind::Download | AppKind::Web => {
            &["download", "web", "conference", "conference-printed"]
        }
        // All are scored by the chunks' bitrates and stalls; the second steers by the sharp corner.
        AppKind::Vod => &["vod", "vod-printed"],
        // They steer. A transfer without an end has no completion time and no picture, so it is scored
        // by its throughput (Mortise Fig. 15 has both).
        AppKind::Bulk => &["download", "vod"],
    }
}

/// Why the model does not suit the application, and which do; `None` where it does.
pub(crate) fn unsuited(settings: &AppSettings, text: &str, model: &Model) -> Option<String> {
    let (kind, name) = (settings.kind, text.trim());
    let wrong = match model {
        Model::Formula(_) => {
            let has = |factor: &str| {
                known(kind).iter().any(|known| known.name() == factor)
                    || settings.factors.contains_key(factor)
            };
            let missing = model.factors().into_iter().find(|factor| !has(factor))?;
            format!("`{missing}` is unknown when {kind} is scored")
        }
        _ if names(kind).contains(&name) => return None,
        _ => format!("`{name}` does not score {kind}"),
    };
    let mut variables = vec!["T", "D", "L"];
    variables.extend(known(kind).iter().map(|factor| factor.name()));
    Some(format!(
        "{wrong}: use {}, or a formula in {} and factors of your own",
        names(kind).join(", "),
        variables.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::prepare::PreparedApp;

    fn settings(kind: AppKind, qoe: &str) -> AppSettings {
        AppSettings { qoe: Some(qoe.to_owned()), ..AppSettings::new(kind) }
    }

    #[test]
    fn a_model_that_scores_nothing_of_the_application_is_refused_with_those_that_do() {
        for (kind, qoe, wrong, right) in [
            (AppKind::Vod, "web", "`web` does not score vod", "use vod, vod-printed, or"),
            (AppKind::Vod, "download", "`download` does not score vod", "T, D, L, C and"),
            (AppKind::Vod, "ln(T) - V", "`V` is unknown when vod is scored", "T, D, L, C and"),
            (AppKind::Bulk, "web", "`web` does not score bulk", "use download, vod, or"),
            (AppKind::Bulk, "R/T", "`R` is unknown when bulk is scored", "T, D, L and"),
            (AppKind::Download, "vod", "`vod` does not score download", "use download, web,"),
            (AppKind::Web, "T - remaining", "`remaining` is unknown", "T, D, L, R, Rbar and"),
        ] {
            let e = PreparedApp::new(&settings(kind, qoe)).unwrap_err().to_string();
            assert!(e.contains(wrong) && e.contains(right), "{kind} {qoe}: {e}");
            assert!(!e.contains('\n'), "{e}");
        }
    }

    #[test]
    fn a_model_that_scores_the_application_is_taken() {
        for (kind, qoe) in [
            (AppKind::Download, "conference"),
            (AppKind::Web, "download"),
            (AppKind::Download, "ln(R) + T - Rbar"),
            (AppKind::Vod, "vod-printed"),
            (AppKind::Vod, "ln(T) - C"),
            (AppKind::Bulk, "vod"),
            (AppKind::Bulk, "T - 20*D"),
        ] {
            PreparedApp::new(&settings(kind, qoe)).unwrap();
        }
        let mut own = settings(AppKind::Vod, "T - price*D + C");
        own.factors.insert("price".to_owned(), 3.0);
        PreparedApp::new(&own).unwrap();
    }
}

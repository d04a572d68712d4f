//! Which QoE models suit which application: those by which it can be scored.
//!
//! An application is scored from what its user went through (`score.rs`). A model that reads what no
//! unit of the application has scores nothing, and one that the application is not scored by changes
//! nothing: both are mistakes, and said before anything runs.

use trimtab_qoe::Model;

use crate::scenario::AppSettings;

/// Why the model does not suit the application, and which do; `None` where it does.
pub(crate) fn unsuited(settings: &AppSettings, text: &str, model: &Model) -> Option<String> {
    let (kind, name) = (settings.kind, text.trim());
    let info = kind.info();
    let wrong = match model {
        Model::Formula(_) => {
            let has = |factor: &str| {
                info.factors.contains(&factor) || settings.factors.contains_key(factor)
            };
            let missing = model.factors().into_iter().find(|factor| !has(factor))?;
            format!("`{missing}` is unknown when {kind} is scored")
        }
        _ if info.models.contains(&name) => return None,
        _ => format!("`{name}` does not score {kind}"),
    };
    let mut variables = vec!["T", "D", "L"];
    variables.extend(info.factors);
    Some(format!(
        "{wrong}: use {}, or a formula in {} and factors of your own",
        info.models.join(", "),
        variables.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::prepare::PreparedApp;
    use crate::scenario::AppKind;

    fn settings(kind: &str, qoe: &str) -> AppSettings {
        let kind = AppKind::named(kind).unwrap();
        AppSettings { qoe: Some(qoe.to_owned()), ..AppSettings::new(kind) }
    }

    #[test]
    fn a_model_that_scores_nothing_of_the_application_is_refused_with_those_that_do() {
        for (kind, qoe, wrong, right) in [
            ("vod", "web", "`web` does not score vod", "use vod, vod-printed, or"),
            ("vod", "download", "`download` does not score vod", "T, D, L, C and"),
            ("vod", "ln(T) - V", "`V` is unknown when vod is scored", "T, D, L, C and"),
            ("bulk", "web", "`web` does not score bulk", "use download, vod, or"),
            ("bulk", "R/T", "`R` is unknown when bulk is scored", "T, D, L and"),
            ("download", "vod", "`vod` does not score download", "use download, web,"),
            ("web", "T - remaining", "`remaining` is unknown", "T, D, L, R, Rbar and"),
        ] {
            let e = PreparedApp::new(&settings(kind, qoe)).unwrap_err().to_string();
            assert!(e.contains(wrong) && e.contains(right), "{kind} {qoe}: {e}");
            assert!(!e.contains('\n'), "{e}");
        }
    }

    #[test]
    fn a_model_that_scores_the_application_is_taken() {
        for (kind, qoe) in [
            ("download", "conference"),
            ("web", "download"),
            ("download", "ln(R) + T - Rbar"),
            ("vod", "vod-printed"),
            ("vod", "ln(T) - C"),
            ("bulk", "vod"),
            ("bulk", "T - 20*D"),
        ] {
            PreparedApp::new(&settings(kind, qoe)).unwrap();
        }
        let mut own = settings("vod", "T - price*D + C");
        own.factors.insert("price".to_owned(), 3.0);
        PreparedApp::new(&own).unwrap();
    }
}

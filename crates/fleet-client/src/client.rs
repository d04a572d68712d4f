//! Asks an engine that runs, over its API.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::api::{
    AggregateBody, AggregatesBody, AuditBody, ComparisonsBody, ConfigurationAnswer,
    ConfigurationQuery, DecisionsBody, Done, EndSafe, ErrorBody, ExperimentBody, ExperimentsBody,
    Hold, HostComparisons, Name, NewExperiment, NewRollout, NewSafe, OrderBody, ReportAnswer,
    ReportBatch, RolloutBody, RolloutOrder, RolloutsBody, SafeBody, ServicesBody, StatusBody,
    StopExperiment,
};
use crate::error::Error;
use crate::secret::{Credential, Secret};

/// Longer than anything that an engine lets wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(90);

/// Which aggregates to list.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// A part of the service's name, a space, and the prefix.
    pub search: String,
    /// Of this service only.
    pub service: Option<String>,
    /// Filter by hold state.
    pub hold: Option<Hold>,
    /// At most so many.
    pub limit: usize,
}

/// Whom to ask, and as whom.
pub struct Client {
    url: String,
    token: Credential,
    agent: Agent,
}

impl Client {
    /// Asks the engine at a URL with a token, or a file with one that is read again when it changes;
    /// `authority` is a file with the certificates in PEM
    /// that it is trusted by, where those of the web are not.
    ///
    /// # Errors
    /// A file cannot be read, or has no certificate or token.
    pub fn new(
        url: &str,
        token: impl Into<Secret>,
        authority: Option<&Path>,
    ) -> Result<Self, Error> {
        let mut config =
            Agent::config_builder().http_status_as_error(false).timeout_global(Some(ANSWER_WITHIN));
        if let Some(path) = authority {
            let fail = |reason: String| Error::Authority { path: path.to_owned(), reason };
            let bytes = std::fs::read(path).map_err(|e| fail(e.to_string()))?;
            let mut trusted = Vec::new();
            for item in parse_pem(&bytes) {
                if let PemItem::Certificate(one) = item.map_err(|e| fail(e.to_string()))? {
                    trusted.push(one);
                }
            }
            if trusted.is_empty() {
                return Err(fail("none begins there".to_owned()));
            }
            let roots = RootCerts::new_with_certs(&trusted);
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        let url = url.trim_end_matches('/').to_owned();
        let token = Credential::new(token.into())?;
        Ok(Self { url, token, agent: config.build().into() })
    }

    /// Whom it asks.
    pub fn url(&self) -> &str {
        &self.url
    }

    fn read<T: DeserializeOwned>(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<T, Error> {
        let gone = |e: &dyn std::fmt::Display| Error::NoEngine {
            url: self.url.clone(),
            reason: e.to_string(),
        };
        let mut answer = answer.map_err(|e| gone(&e))?;
        let status = answer.status();
        let text = answer.body_mut().read_to_string().map_err(|e| gone(&e))?;
        if status.is_success() {
            return serde_json::from_str(&text)
                .map_err(|e| gone(&format!("something else does, or another version: {e}")));
        }
        let body = serde_json::from_str::<ErrorBody>(&text).ok();
        let is_expired = body.as_ref().is_some_and(|body| body.reason == "expired");
        let said = body.map_or_else(|| format!("it answers {status}"), |body| body.message);
        Err(match status.as_u16() {
            401 if is_expired => Error::Expired { url: self.url.clone(), reason: said },
            401 => Error::Token { url: self.url.clone(), reason: said },
            403 => Error::NotAllowed { url: self.url.clone(), reason: said },
            429 | 503 => Error::Later(said),
            _ => Error::Refused(said),
        })
    }

    fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, Error> {
        let query = query.iter().map(|(name, value)| (*name, value.as_str()));
        let request = self.agent.get(format!("{}{path}", self.url)).query_pairs(query);
        self.read(request.header("Authorization", format!("Bearer {}", self.token.now())).call())
    }

    fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Error> {
        let text = serde_json::to_string(body).expect("what is sent is plain data");
        let request =
            self.agent.post(format!("{}{path}", self.url)).content_type("application/json");
        self.read(
            request.header("Authorization", format!("Bearer {}", self.token.now())).send(text),
        )
    }

    /// How the engine does.
    ///
    /// # Errors
    /// It is not there, or refuses.
    pub fn status(&self) -> Result<StatusBody, Error> {
        self.get("/v1/status", &[])
    }

    /// The services, with the length of their intervals.
    ///
    /// # Errors
    /// It is not there, or refuses.
    pub fn services(&self) -> Result<ServicesBody, Error> {
        self.get("/v1/services", &[])
    }

    /// Aggregates, in the order of their names; asks as often as it takes.
    ///
    /// # Errors
    /// It is not there, or refuses.
    pub fn aggregates(&self, listing: &Listing) -> Result<AggregatesBody, Error> {
        let mut all = AggregatesBody { aggregates: Vec::new(), more: true };
        while all.more && all.aggregates.len() < listing.limit {
            let left = listing.limit - all.aggregates.len();
            let mut query =
                vec![("q", listing.search.clone()), ("limit", left.min(1000).to_string())];
            query.extend(listing.service.clone().map(|service| ("service", service)));
            query.extend(listing.hold.map(|hold| ("hold", hold.name().to_owned())));
            if let Some(last) = all.aggregates.last() {
                query.push(("after_service", last.service.clone()));
                query.push(("after_prefix", last.prefix.clone()));
            }
            let page: AggregatesBody = self.get("/v1/aggregates", &query)?;
            // Without this an engine that promises more and sends none would be asked for ever.
            all.more = page.more && !page.aggregates.is_empty();
            all.aggregates.extend(page.aggregates);
        }
        Ok(all)
    }

    /// One aggregate.
    ///
    /// # Errors
    /// The engine is not there, or refuses, or knows none of this name.
    pub fn aggregate(&self, name: &Name) -> Result<AggregateBody, Error> {
        self.get(
            "/v1/aggregate",
            &[("service", name.service.clone()), ("prefix", name.prefix.clone())],
        )
    }

    /// Decisions about an aggregate, the latest first.
    ///
    /// # Errors
    /// The engine is not there, or refuses, or knows none of this name.
    pub fn decisions(&self, name: &Name, limit: usize) -> Result<DecisionsBody, Error> {
        let query = [
            ("service", name.service.clone()),
            ("prefix", name.prefix.clone()),
            ("limit", limit.to_string()),
        ];
        self.get("/v1/decisions", &query)
    }

    /// Pauses, resumes, pins or rolls back an aggregate.
    ///
    /// # Errors
    /// The engine is not there, or refuses.
    pub fn order(&self, order: &OrderBody) -> Result<AggregateBody, Error> {
        self.post("/v1/aggregate", order)
    }

    /// Puts services on their safe configurations, all aggregates at once.
    ///
    /// # Errors
    /// The engine is not there, or refuses.
    pub fn make_safe(&self, new: &NewSafe) -> Result<SafeBody, Error> {
        self.post("/v1/safe", new)
    }

    /// Ends orders that keep services on their safe configurations.
    ///
    /// # Errors
    /// The engine is not there, or refuses; there is no such order.
    pub fn end_safe(&self, end: &EndSafe) -> Result<SafeBody, Error> {
        self.post("/v1/safe/end", end)
    }

    /// What hosts found by comparing their rules.
    ///
    /// # Errors
    /// The engine is not there, or refuses.
    pub fn comparisons(&self) -> Result<ComparisonsBody, Error> {
        self.get("/v1/comparisons", &[])
    }

    /// Hands in what a host found by comparing its rules.
    ///
    /// # Errors
    /// The engine is not there, or refuses; one of an earlier version does not know comparisons.
    pub(crate) fn tell_comparisons(&self, found: &HostComparisons) -> Result<Done, Error> {
        self.post("/v1/comparisons", found)
    }

    /// The audit log, the latest first: what was refused, or the rest, or both.
    ///
    /// # Errors
    /// The engine is not there, or refuses.
    pub fn audit(&self, refused: Option<bool>, limit: usize) -> Result<AuditBody, Error> {
        let mut query = vec![("limit", limit.to_string())];
        query.extend(refused.map(|refused| ("refused", refused.to_string())));
        self.get("/v1/audit", &query)
    }

    /// Experiments, the latest first.
    ///
    /// # Errors
    /// The engine is not there, or refuses.
    pub fn experiments(&self, service: Option<&str>) -> Result<ExperimentsBody, Error> {
        self.get("/v1/experiments", &of_service(service))
    }

    /// An experiment, with what it has shown.
    ///
    /// # Errors
    /// The engine is not there, or refuses, or knows none of this name.
    pub fn experiment(&self, service: &str, name: &str) -> Result<ExperimentBody, Error> {
        self.get("/v1/experiment", &of_name(service, name))
    }

    /// Begins an experiment.
    ///
    /// # Errors
    /// The engine is not there, or refuses.
    pub fn begin_experiment(&self, new: &NewExperiment) -> Result<ExperimentBody, Error> {
        self.post("/v1/experiments", new)
    }

    /// Stops an experiment before its end.
    ///
    /// # Errors
    /// The engine is not there, or refuses.
    pub fn stop_experiment(&self, stop: &StopExperiment) -> Result<ExperimentBody, Error> {
        self.post("/v1/experiment/stop", stop)
    }

    /// Rollouts, the latest first.
    ///
    /// # Errors
    /// The engine is not there, or refuses.
    pub fn rollouts(&self, service: Option<&str>) -> Result<RolloutsBody, Error> {
        self.get("/v1/rollouts", &of_service(service))
    }

    /// A rollout, with what is known of its stage.
    ///
    /// # Errors
    /// The engine is not there, or refuses, or knows none of this name.
    pub fn rollout(&self, service: &str, name: &str) -> Result<RolloutBody, Error> {
        self.get("/v1/rollout", &of_name(service, name))
    }

    /// Begins a rollout.
    ///
    /// # Errors
    /// The engine is not there, or refuses.
    pub fn begin_rollout(&self, new: &NewRollout) -> Result<RolloutBody, Error> {
        self.post("/v1/rollouts", new)
    }

    /// Holds, resumes or aborts a rollout.
    ///
    /// # Errors
    /// The engine is not there, or refuses.
    pub fn order_rollout(&self, order: &RolloutOrder) -> Result<RolloutBody, Error> {
        self.post("/v1/rollout/order", order)
    }

    /// Hands reports in; they are on the engine's disk when this returns.
    ///
    /// # Errors
    /// The engine is not there, or refuses.
    pub fn report(&self, batch: &ReportBatch) -> Result<ReportAnswer, Error> {
        self.post("/v1/reports", batch)
    }

    /// The configurations that this edge does not have, at once or when one changes.
    ///
    /// # Errors
    /// The engine is not there, or refuses.
    pub fn configurations(&self, query: &ConfigurationQuery) -> Result<ConfigurationAnswer, Error> {
        self.post("/v1/configurations", query)
    }
}

fn of_service(service: Option<&str>) -> Vec<(&'static str, String)> {
    service.map(|service| ("service", service.to_owned())).into_iter().collect()
}

fn of_name(service: &str, name: &str) -> [(&'static str, String); 2] {
    [("service", service.to_owned()), ("name", name.to_owned())]
}

#[cfg(test)]
mod tests;

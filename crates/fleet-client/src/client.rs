//! Asks an engine that runs, over its API.

use std::path::Path;

use rustls::AlertDescription;
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::RequestBuilder;

use crate::api::{
    AggregateBody, AggregatesBody, AuditBody, BulkBody, BulkOrder, ComparisonsBody,
    ConfigurationAnswer, ConfigurationQuery, DecisionsBody, Done, EndSafe, ErrorBody,
    ExperimentBody, ExperimentsBody, Hold, HostComparisons, Name, NewExperiment, NewRollout,
    NewSafe, OrderBody, ReportAnswer, ReportBatch, RolloutBody, RolloutOrder, RolloutsBody,
    SafeBody, ServicesBody, SharedBody, StatusBody, StopExperiment, SurrogateBody, WhatIfBody,
};
use crate::error::Error;
use crate::identity::Identity;
use crate::secret::Secret;

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

/// What would have come of which choice.
#[derive(Clone, Debug, Default)]
pub struct WhatIfAsked {
    /// The service.
    pub service: String,
    /// The destination subnet; none for all of the service.
    pub prefix: Option<String>,
    /// An algorithm of the service.
    pub algorithm: Option<String>,
    /// Knobs that are learnt with their values, as `gamma=900`.
    pub knobs: Vec<String>,
    /// Decisions of each aggregate that are read, the latest ones.
    pub last: usize,
}

/// Carries requests to an engine by another way than HTTP over sockets, e.g. a simulated network.
pub trait Transport: Send + Sync {
    /// Hands one request over, with a body of JSON where it has one, and returns the status and the
    /// body of the answer.
    ///
    /// # Errors
    /// No answer came, and why. The engine may have got the request all the same.
    fn exchange(
        &self,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&str>,
    ) -> Result<(u16, String), String>;
}

/// How requests get to the engine.
enum Way {
    /// Over sockets, as somebody.
    Sockets(Identity),
    /// By what a caller gave.
    Given(Box<dyn Transport>),
}

/// Whom to ask, and as whom.
pub struct Client {
    url: String,
    way: Way,
}

impl Client {
    /// Asks the engine at a URL with a token, or with what is in files that are read again when
    /// they change; `authority` is a file with the certificates in PEM that it is trusted by, where
    /// those of the web are not.
    ///
    /// # Errors
    /// A file cannot be read, or has no certificate, key or token.
    pub fn new(
        url: &str,
        secret: impl Into<Secret>,
        authority: Option<&Path>,
    ) -> Result<Self, Error> {
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { url, way: Way::Sockets(Identity::new(secret.into(), authority)?) })
    }

    /// Asks by a transport, which says who asks; `name` stands for the URL in messages.
    pub fn over(name: &str, transport: impl Transport + 'static) -> Self {
        Self { url: name.to_owned(), way: Way::Given(Box::new(transport)) }
    }

    /// Whom it asks.
    pub fn url(&self) -> &str {
        &self.url
    }

    fn gone(&self, reason: &impl ToString) -> Error {
        Error::NoEngine { url: self.url.clone(), reason: reason.to_string() }
    }

    /// What an answer over sockets consists of.
    fn received(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<(u16, String), Error> {
        let mut answer = answer.map_err(|e| match refused_certificate(&e) {
            Some(reason) => Error::Certificate { url: self.url.clone(), reason },
            None => self.gone(&e),
        })?;
        let text = answer.body_mut().read_to_string().map_err(|e| self.gone(&e))?;
        Ok((answer.status().as_u16(), text))
    }

    fn read<T: DeserializeOwned>(&self, (status, text): (u16, String)) -> Result<T, Error> {
        if (200..300).contains(&status) {
            return serde_json::from_str(&text)
                .map_err(|e| self.gone(&format!("something else does, or another version: {e}")));
        }
        let body = serde_json::from_str::<ErrorBody>(&text).ok();
        let says = |reason| body.as_ref().is_some_and(|body| body.reason == reason);
        let (is_expired, is_certificate) = (says("expired"), says("certificate"));
        let is_clock = says("clock");
        let said = body.map_or_else(|| format!("it answers {status}"), |body| body.message);
        Err(match status {
            400 if is_clock => Error::Clock(said),
            401 if is_expired => Error::Expired { url: self.url.clone(), reason: said },
            401 if is_certificate => Error::Certificate { url: self.url.clone(), reason: said },
            401 => Error::Token { url: self.url.clone(), reason: said },
            403 => Error::NotAllowed { url: self.url.clone(), reason: said },
            // A body that came too slowly comes sooner another time (408); and what stands between
            // says by 500 to 599 that it does not get to the engine.
            408 | 429 | 500..=599 => Error::Later(said),
            _ => Error::Refused(said),
        })
    }

    fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, Error> {
        let query = query.iter().map(|(name, value)| (*name, value.as_str()));
        let answer = match &self.way {
            Way::Sockets(identity) => {
                let (agent, token) = identity.now();
                let request = agent.get(format!("{}{path}", self.url)).query_pairs(query);
                self.received(with(request, token).call())?
            }
            Way::Given(transport) => {
                let query: Vec<_> = query.collect();
                transport.exchange(path, &query, None).map_err(|e| self.gone(&e))?
            }
        };
        self.read(answer)
    }

    fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Error> {
        let text = serde_json::to_string(body).expect("what is sent is plain data");
        let answer = match &self.way {
            Way::Sockets(identity) => {
                let (agent, token) = identity.now();
                let request =
                    agent.post(format!("{}{path}", self.url)).content_type("application/json");
                self.received(with(request, token).send(text))?
            }
            Way::Given(transport) => {
                transport.exchange(path, &[], Some(&text)).map_err(|e| self.gone(&e))?
            }
        };
        self.read(answer)
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
        let mut all = AggregatesBody { aggregates: Vec::new(), unreadable: Vec::new(), more: true };
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
            all.unreadable.extend(page.unreadable);
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

    /// What another choice would have brought, by the decisions so far.
    ///
    /// # Errors
    /// The engine is not there, or refuses, also where its decisions show too little of it.
    pub fn what_if(&self, asked: &WhatIfAsked) -> Result<WhatIfBody, Error> {
        let mut query = vec![("service", asked.service.clone())];
        query.extend(asked.prefix.clone().map(|prefix| ("prefix", prefix)));
        query.extend(asked.algorithm.clone().map(|algorithm| ("algorithm", algorithm)));
        if !asked.knobs.is_empty() {
            query.push(("knobs", asked.knobs.join(",")));
        }
        query.push(("last", asked.last.to_string()));
        self.get("/v1/what-if", &query)
    }

    /// Which aggregates of a service share bottlenecks, by the last so many decisions of each.
    ///
    /// # Errors
    /// The engine is not there, or refuses, also where its decisions show too little of it.
    pub fn shared(&self, service: &str, last: usize) -> Result<SharedBody, Error> {
        self.get("/v1/shared", &[("service", service.to_owned()), ("last", last.to_string())])
    }

    /// A surrogate of a service's reward, fitted to the latest decisions of each aggregate.
    ///
    /// # Errors
    /// The engine is not there, or refuses, also where its decisions show too little, or nothing
    /// that is better than the present surrogate.
    pub fn fit_surrogate(&self, service: &str, last: usize) -> Result<SurrogateBody, Error> {
        let query = [("service", service.to_owned()), ("last", last.to_string())];
        self.get("/v1/fit-surrogate", &query)
    }

    /// Pauses, resumes, pins or rolls back an aggregate.
    ///
    /// # Errors
    /// The engine is not there, or refuses.
    pub fn order(&self, order: &OrderBody) -> Result<AggregateBody, Error> {
        self.post("/v1/aggregate", order)
    }

    /// The same for every aggregate that fits, or for none; or what that would change.
    ///
    /// # Errors
    /// The engine is not there, or refuses.
    pub fn order_all(&self, order: &BulkOrder) -> Result<BulkBody, Error> {
        self.post("/v1/aggregates/order", order)
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

/// What an engine says of a client's certificate while TLS begins, as its alert has it.
fn refused_certificate(error: &ureq::Error) -> Option<String> {
    let ureq::Error::Io(error) = error else { return None };
    let rustls::Error::AlertReceived(alert) = error.get_ref()?.downcast_ref()? else { return None };
    let text = match alert {
        AlertDescription::CertificateExpired => {
            "it has expired, or is not valid yet: renew it, or set the clocks"
        }
        // The second one: an authority of the same name has another key.
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "none of the authorities in the engine's [tls] clients signed it: give one of theirs"
        }
        AlertDescription::BadCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnsupportedCertificate => {
            return Some(format!("{alert:?}; the engine's log says more"));
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// The request with a token, where there is one.
fn with<Any>(request: RequestBuilder<Any>, token: Option<String>) -> RequestBuilder<Any> {
    match token {
        Some(token) => request.header("Authorization", format!("Bearer {token}")),
        None => request,
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

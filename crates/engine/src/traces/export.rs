//! How spans leave the engine: a queue with an end, a thread of the SDK's, and OTLP by HTTP.
//!
//! The SDK's own queue drops what does not fit without a way to count it, so [`Bounded`] in front of
//! it lets no more in than fits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, Span, SpanData,
    SpanExporter, SpanProcessor,
};
use prometheus_client::metrics::counter::Counter;
use ureq::Agent;

use crate::config::TraceSettings;
use crate::logging::warn;
use crate::outgoing;

/// Spans that wait at most, with those that are on their way; some 4 MB.
const QUEUE: usize = 4096;
/// Spans of one request, which is sent when there are as many or after a while.
const BATCH: usize = 512;
const SEND_EVERY: Duration = Duration::from_secs(2);
/// The collector has so long for one attempt, and so long for all attempts to send a batch.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
const SENT_WITHIN: Duration = Duration::from_secs(10);
/// The engine's end waits so long for the collector.
const END_WITHIN: Duration = Duration::from_secs(5);
/// An answer has one number and a short message.
const ANSWER_MAX: u64 = 64 * 1024;
/// Links of a span: as many as a commit has batches.
const LINKS_MAX: u32 = 512;

/// What became of spans.
#[derive(Clone, Debug)]
pub(crate) struct Spans {
    sent: Counter,
    dropped: Counter,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Spans that ended, and of which it is not known yet what became of them.
    waiting: AtomicUsize,
    /// Whether the log says that spans are dropped.
    has_warned: AtomicBool,
}

impl Spans {
    pub(crate) fn new(sent: Counter, dropped: Counter) -> Self {
        Self { sent, dropped, state: Arc::default() }
    }

    /// Takes one in, where there is room.
    fn enter(&self) -> bool {
        if self.state.waiting.fetch_add(1, Ordering::Relaxed) < QUEUE {
            return true;
        }
        self.state.waiting.fetch_sub(1, Ordering::Relaxed);
        self.lost(1, &format!("{QUEUE} wait for the collector already"));
        false
    }

    /// So many left the queue: they were sent, or why they were not.
    fn left(&self, count: usize, result: &OTelSdkResult) {
        self.state.waiting.fetch_sub(count, Ordering::Relaxed);
        match result {
            Ok(()) => {
                self.sent.inc_by(count as u64);
            }
            Err(e) => self.lost(count, &e.to_string()),
        }
    }

    /// Counts spans that are lost, and warns once: the collector may be away for long.
    fn lost(&self, count: usize, why: &str) {
        self.dropped.inc_by(count as u64);
        if !self.state.has_warned.swap(true, Ordering::Relaxed) {
            warn(&format!(
                "traces: spans are dropped: {why}. See to the collector of [traces]; \
                 trimtab_engine_spans_total counts on, and this warning does not come again"
            ));
        }
    }
}

/// What sends spans as the settings say.
pub(super) fn provider(
    settings: &TraceSettings,
    spans: &Spans,
) -> Result<SdkTracerProvider, String> {
    let token = settings.token_file.as_deref().map(|file| {
        let wrong = |why: String| format!("token_file {}: {why}", file.display());
        let text = std::fs::read_to_string(file).map_err(|e| wrong(e.to_string()))?;
        let token = text.trim();
        let fits = |c: char| c.is_ascii_graphic();
        if token.is_empty() || !token.chars().all(fits) {
            return Err(wrong("it has to have one token, without spaces".to_owned()));
        }
        Ok(format!("Bearer {token}"))
    });
    let authorization = token.transpose()?.map(|value| ("authorization".to_owned(), value));
    let agent = outgoing::agent(settings.authority.as_deref(), ANSWER_WITHIN)?;
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_http_client(Collector(agent))
        .with_endpoint(&settings.url)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(SENT_WITHIN)
        .with_headers(authorization.into_iter().collect())
        .build()
        .map_err(|e| e.to_string())?;
    let config = BatchConfigBuilder::default()
        .with_max_queue_size(QUEUE)
        .with_max_export_batch_size(BATCH)
        .with_scheduled_delay(SEND_EVERY)
        .build();
    let counted = Counted { exporter, spans: spans.clone() };
    let queue = BatchSpanProcessor::builder(counted).with_batch_config(config).build();
    let mut instance = [0; 16];
    getrandom::fill(&mut instance).map_err(|e| format!("cannot get random bits: {e}"))?;
    let instance: String = instance.iter().map(|byte| format!("{byte:02x}")).collect();
    let resource = Resource::builder()
        .with_service_name("trimtab-engine")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attribute(KeyValue::new("service.instance.id", instance))
        .build();
    let share = Sampler::TraceIdRatioBased(settings.share);
    Ok(SdkTracerProvider::builder()
        .with_span_processor(Bounded { queue, spans: spans.clone() })
        .with_sampler(Sampler::ParentBased(Box::new(share)))
        .with_max_links_per_span(LINKS_MAX)
        .with_resource(resource)
        .build())
}

/// Sends what is left. A collector that takes too long loses it.
pub(super) fn end(provider: &SdkTracerProvider, spans: &Spans) {
    // What did not leave is counted below, and each attempt that failed was.
    let _ = provider.shutdown_with_timeout(END_WITHIN);
    let left = spans.state.waiting.load(Ordering::Relaxed);
    if left > 0 {
        warn(&format!("traces: {left} spans are lost, since the collector does not take them"));
    }
}

/// A queue that takes no more than it holds.
#[derive(Debug)]
struct Bounded {
    queue: BatchSpanProcessor,
    spans: Spans,
}

impl SpanProcessor for Bounded {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.queue.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.spans.enter() {
            self.queue.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.queue.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.queue.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.queue.set_resource(resource);
    }
}

/// Counts what is sent.
#[derive(Debug)]
struct Counted {
    exporter: opentelemetry_otlp::SpanExporter,
    spans: Spans,
}

impl SpanExporter for Counted {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        let result = self.exporter.export(batch).await;
        self.spans.left(count, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// The way to the collector. It blocks, on the thread that is there for that.
#[derive(Debug)]
struct Collector(Agent);

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let answer = self.0.run(Request::from_parts(head, &body[..]))?;
        let (head, mut body) = answer.into_parts();
        let body = body.with_config().limit(ANSWER_MAX).read_to_vec()?;
        Ok(Response::from_parts(head, Bytes::from(body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_queue_has_no_room_for_is_counted_and_there_is_room_again() {
        let (sent, dropped) = (Counter::default(), Counter::default());
        let spans = Spans::new(sent.clone(), dropped.clone());
        assert!((0..QUEUE).all(|_| spans.enter()));
        assert!(!spans.enter() && !spans.enter());
        assert_eq!((sent.get(), dropped.get()), (0, 2));
        spans.left(BATCH, &Ok(()));
        assert!((0..BATCH).all(|_| spans.enter()) && !spans.enter());
        let failed = Err(opentelemetry_sdk::error::OTelSdkError::InternalFailure("503".to_owned()));
        spans.left(BATCH, &failed);
        assert_eq!((sent.get(), dropped.get()), (BATCH as u64, BATCH as u64 + 3));
    }
}

//! Traces: what the engine does, as spans that a collector takes by OTLP (OpenTelemetry).
//!
//! Nothing here waits for the collector: a span that ends goes into a queue, or is dropped and
//! counted (`export.rs`). Where traces are off, a span is nothing. No span has a header, a body, a
//! query or an URL that somebody else chose, since any of these may be a secret.

mod export;
mod round;

use std::sync::Arc;
use std::time::SystemTime;

use opentelemetry::trace::{
    Link, SpanContext, SpanKind, Status, TraceContextExt, Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

pub(crate) use self::export::Spans;
pub(crate) use self::round::RoundSpan;
use crate::config::TraceSettings;
use crate::error::Error;

/// What begins spans; nothing where traces are off.
#[derive(Clone, Default)]
pub(crate) struct Traces(Option<Arc<Tracing>>);

struct Tracing {
    tracer: SdkTracer,
    provider: SdkTracerProvider,
    spans: Spans,
}

/// What a span is at its beginning.
pub(crate) struct Begin<'a> {
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    /// Whose child it is; none: a trace begins.
    pub(crate) parent: Option<&'a Context>,
    /// When it began; none: now.
    pub(crate) at: Option<SystemTime>,
    /// What led to it, without being its parent.
    pub(crate) links: Vec<SpanContext>,
}

impl Begin<'_> {
    /// A trace of the engine's own.
    pub(crate) fn own(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: SpanKind::Internal,
            parent: None,
            at: None,
            links: Vec::new(),
        }
    }
}

impl Traces {
    /// Sends spans as the settings say; those that are sent and dropped are counted.
    ///
    /// # Errors
    /// A file of the settings is not as it has to be, or the system starts no thread.
    pub(crate) fn start(settings: Option<&TraceSettings>, spans: Spans) -> Result<Self, Error> {
        let Some(settings) = settings else { return Ok(Self::default()) };
        let refused = |why| Error::Refused(format!("[traces]: {why}"));
        let provider = export::provider(settings, &spans).map_err(refused)?;
        let tracer = provider.tracer("trimtab-engine");
        Ok(Self(Some(Arc::new(Tracing { tracer, provider, spans }))))
    }

    pub(crate) fn are_on(&self) -> bool {
        self.0.is_some()
    }

    /// Begins a span. It is only asked what the span is where traces are on.
    pub(crate) fn begin<'a>(&self, begin: impl FnOnce() -> Begin<'a>) -> Span {
        let Some(tracing) = &self.0 else { return Span(None) };
        let Begin { name, kind, parent, at, links } = begin();
        let mut builder = tracing.tracer.span_builder(name).with_kind(kind);
        builder.start_time = at;
        let links = links.into_iter().filter(SpanContext::is_valid).map(Link::with_context);
        builder.links = Some(links.collect());
        let none = Context::new();
        let parent = parent.unwrap_or(&none);
        Span(Some(parent.with_span(tracing.tracer.build_with_context(builder, parent))))
    }

    /// Sends what is left, and waits for that no longer than a few seconds. Blocks.
    pub(crate) fn end(&self) {
        if let Some(tracing) = &self.0 {
            export::end(&tracing.provider, &tracing.spans);
        }
    }
}

/// The span in which this runs, where there is one.
pub(crate) fn current() -> SpanContext {
    Context::map_current(|context| context.span().span_context().clone())
}

/// A span, until it is dropped.
pub(crate) struct Span(Option<Context>);

impl Span {
    /// Says more about what is done.
    pub(crate) fn set(&self, key: &'static str, value: impl Into<Value>) {
        if let Some(context) = &self.0 {
            context.span().set_attribute(KeyValue::new(key, value));
        }
    }

    /// It failed; `kind` is one of a few words, and never a message.
    pub(crate) fn fail(&self, kind: impl Into<Value>) {
        if let Some(context) = &self.0 {
            context.span().set_attribute(KeyValue::new("error.type", kind));
            context.span().set_status(Status::error(""));
        }
    }

    /// What children have as their parent.
    pub(crate) fn context(&self) -> Option<&Context> {
        self.0.as_ref()
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(context) = &self.0 {
            context.span().end();
        }
    }
}

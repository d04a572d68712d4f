//! The process: opens the store, starts the threads, serves, and ends in good order.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::broker::Broker;
use crate::closer::Keeps;
use crate::config::{Config, Keep};
use crate::engine::{Clients, Engine, Parts};
use crate::error::Error;
use crate::ingest::Ingest;
use crate::logging::{log, use_format, warn};
use crate::metrics::Metrics;
use crate::server::{Certificate, serve};
use crate::services::Services;
use crate::store::{Lengths, Postgres, Shared, Sqlite, Store};
use crate::traces::Traces;
use crate::{api, closer, safe, webhooks};

/// Runs the engine by a configuration until SIGTERM or SIGINT; SIGHUP reads the services, the
/// certificate and the names of clients again.
///
/// # Errors
/// The configuration is wrong, the store does not open, or the address is taken.
pub fn run(path: &Path) -> Result<(), Error> {
    let config = Config::read(path)?;
    use_format(config.log_format);
    let services = Services::read(&config.services, config.grace)?;
    check_clients(&config, &services)?;
    let store = open_store(&config, &services.lengths())?;
    let services = Arc::new(services);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::system("start the threads that serve", e))?;
    runtime.block_on(run_with(path, &config, store, services))
}

/// Which certificates of clients are taken by what was read last.
fn clients(config: &Config, certificate: &Certificate) -> Clients {
    Clients { verifier: certificate.verifier(), rules: config.clients.clone() }
}

/// Whether the engine has the services that clients with certificates report for.
fn check_clients(config: &Config, services: &Services) -> Result<(), Error> {
    let mut named = config.clients.iter().flat_map(|rule| &rule.services);
    named.find(|service| !services.has(service)).map_or(Ok(()), |stray| {
        let folder = config.services.display();
        Err(Error::Refused(format!("[[client]]: there is no service {stray:?} in {folder}")))
    })
}

/// Opens the store that a configuration names, to run an engine on it.
fn open_store(config: &Config, lengths: &Lengths) -> Result<Arc<dyn Store>, Error> {
    Ok(match &config.store {
        Keep::File(file) => Arc::new(Sqlite::open(file, lengths)?),
        Keep::Shared { postgres, broker } => {
            let tables = Postgres::open(postgres, lengths)?;
            Arc::new(match broker {
                None => Shared::tables(tables)?,
                Some(broker) => {
                    let broker = Broker::open(broker, config.limits.body.get())?;
                    Shared::with_broker(tables, broker)
                }
            })
        }
    })
}

/// Opens its tables alone, where an engine may run on them.
pub(crate) fn open_tables(config: &Config) -> Result<Arc<dyn Store>, Error> {
    Ok(match &config.store {
        Keep::File(file) => Arc::new(Sqlite::open_next_to_engine(file)?),
        Keep::Shared { postgres, .. } => Arc::new(Postgres::open_next_to_engine(postgres)?),
    })
}

/// An engine that nobody asks yet, and that closes nothing yet.
pub(crate) fn assemble(
    config: &Config,
    store: Arc<dyn Store>,
    services: Arc<Services>,
) -> Result<Arc<Engine>, Error> {
    let metrics = Metrics::new();
    let traces = Traces::start(config.traces.as_ref(), metrics.spans())?;
    let ingest = Ingest::start(&store, &traces)?;
    let engine = Arc::new(Engine::new(Parts {
        store,
        learning: services,
        ingest,
        metrics,
        traces,
        scheme: if config.tls.is_some() { "https" } else { "http" },
        limits: config.limits,
        skew_ms: config.skew.as_millis() as i64,
        grace_ms: config.grace.as_millis() as i64,
        age_ms: config.age.as_millis() as i64,
    }));
    let others = Arc::downgrade(&engine);
    engine.store.on_change(Box::new(move |changed| {
        if let Some(engine) = others.upgrade() {
            engine.tell(changed);
        }
    }));
    Ok(engine)
}

/// How long an engine keeps things, by a configuration.
pub(crate) fn keeps(config: &Config) -> Keeps {
    Keeps {
        decisions_ms: config.keep.as_millis() as i64,
        audit_ms: config.keep_audit.as_millis() as i64,
    }
}

async fn run_with(
    path: &Path,
    config: &Config,
    store: Arc<dyn Store>,
    mut services: Arc<Services>,
) -> Result<(), Error> {
    let certificate = Certificate::default();
    certificate.load(config.tls.as_ref())?;
    let engine = assemble(config, store, services.clone())?;
    engine.set_clients(clients(config, &certificate));
    // Before the first edge asks: what was ordered outlives an engine.
    engine.ask(Engine::read_safe).await?;
    tokio::spawn(safe::follow(Arc::downgrade(&engine)));
    let listener = TcpListener::bind(config.listen)
        .await
        .map_err(|e| Error::system(format!("listen on {}", config.listen), e))?;
    let address = listener.local_addr().map_err(|e| Error::system("listen", e))?;
    let fail = |e| Error::system("handle signals", e);
    let mut hangup = signal(SignalKind::hangup()).map_err(fail)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(fail)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(fail)?;
    let closer = closer::start(Arc::clone(&engine), keeps(config))?;
    let couriers = start_webhooks(&engine, config).await?;
    log(&format!(
        "listens at {}://{address}, with the services of {}, and keeps all in {}",
        engine.scheme,
        config.services.display(),
        engine.store.way()
    ));

    let (end, ending) = watch::channel(false);
    let serving = tokio::spawn(serve(
        listener,
        api::router(&engine),
        certificate.clone(),
        Arc::clone(&engine),
        ending,
    ));
    loop {
        tokio::select! {
            _ = hangup.recv() => reload(path, &engine, &certificate, &mut services),
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    log("ends");
    engine.ending.store(true, Ordering::Relaxed);
    // An empty round wakes those who wait for a change.
    let _ = engine.changes.send(Arc::default());
    let _ = end.send(true);
    let _ = serving.await;
    // One that panicked has told why.
    couriers.into_iter().for_each(|courier| drop(courier.join()));
    let closed = closer.join();
    engine.traces.end();
    closed
        .map_err(|_| Error::system("close intervals", "its thread panicked; the message is above"))
}

/// Starts what sends events. From then on none is missed.
async fn start_webhooks(
    engine: &Arc<Engine>,
    config: &Config,
) -> Result<Vec<std::thread::JoinHandle<()>>, Error> {
    let (engine, hooks) = (Arc::clone(engine), config.webhooks.clone());
    let started = tokio::task::spawn_blocking(move || webhooks::start(&engine, &hooks));
    started.await.map_err(|e| Error::system("start what sends events", e))?
}

/// Reads what may change while the engine runs; what is wrong is said, and nothing of it is taken over.
fn reload(path: &Path, engine: &Engine, certificate: &Certificate, services: &mut Arc<Services>) {
    let mut read = || -> Result<(), Error> {
        let config = Config::read(path)?;
        let new = Services::read(&config.services, config.grace)?;
        check_clients(&config, &new)?;
        certificate.load(config.tls.as_ref())?;
        *services = Arc::new(new);
        engine.set_learning(services.clone());
        engine.set_clients(clients(&config, certificate));
        use_format(config.log_format);
        Ok(())
    };
    match read() {
        Ok(()) => {
            log("reads its services, its certificate, [[client]] and log_format again; other \
                 settings hold from its next start");
        }
        Err(e) => {
            warn(&format!("cannot use the new configuration, so the old one stays in force: {e}"));
        }
    }
}

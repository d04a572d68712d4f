//! The network between an edge and an engine, which a test may cut.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What goes through now.
#[derive(Default)]
struct State {
    /// Where the engine is.
    target: Mutex<String>,
    is_cut: AtomicBool,
    /// Requests go through, answers do not.
    is_unanswered: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

/// It listens, and passes on what comes to the engine.
pub(crate) struct Proxy {
    pub(crate) url: String,
    state: Arc<State>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    pub(crate) fn to(engine: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::<State>::default();
        let proxy = Self { url, state: Arc::clone(&state) };
        proxy.point_to(engine);
        // It ends with the test program.
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                state.connect(&client);
            }
        });
        proxy
    }

    /// The engine is there from now on, by its URL.
    pub(crate) fn point_to(&self, engine: &str) {
        let address = engine.strip_prefix("http://").expect("plain HTTP");
        address.clone_into(&mut lock(&self.state.target));
    }

    /// Cuts everything that is open, and what is to come; or lets it through again.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.state.is_cut.store(is_cut, Ordering::Relaxed);
        if is_cut {
            for stream in lock(&self.state.open).drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    /// Lets requests through, and no answers; or answers, too.
    pub(crate) fn leave_unanswered(&self, is_unanswered: bool) {
        self.state.is_unanswered.store(is_unanswered, Ordering::Relaxed);
    }
}

impl State {
    fn connect(self: &Arc<Self>, client: &TcpStream) {
        if self.is_cut.load(Ordering::Relaxed) {
            return;
        }
        let target = lock(&self.target).clone();
        let Ok(engine) = TcpStream::connect(target) else { return };
        let clone = |stream: &TcpStream| stream.try_clone().expect("a handle");
        lock(&self.open).extend([clone(client), clone(&engine)]);
        let (state, to, from) = (Arc::clone(self), clone(&engine), clone(client));
        std::thread::spawn(move || state.carry(from, to, false));
        let (state, to) = (Arc::clone(self), clone(client));
        std::thread::spawn(move || state.carry(engine, to, true));
    }

    /// Until either end is gone, or an answer is not to get through.
    fn carry(&self, mut from: TcpStream, mut to: TcpStream, is_answer: bool) {
        let mut some = [0; 1 << 14];
        while let Ok(length @ 1..) = from.read(&mut some) {
            if is_answer && self.is_unanswered.load(Ordering::Relaxed) {
                break;
            }
            if to.write_all(&some[..length]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

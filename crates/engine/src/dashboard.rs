//! The dashboard: a page that the engine carries in itself, and that asks the same API as everybody else.

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use crate::engine::Engine;

const FILES: [(&str, &str, &str); 13] = [
    ("/", "text/html; charset=utf-8", include_str!("dashboard/index.html")),
    ("/assets/style.css", "text/css; charset=utf-8", include_str!("dashboard/style.css")),
    ("/assets/api.js", "text/javascript; charset=utf-8", include_str!("dashboard/api.js")),
    ("/assets/chart.js", "text/javascript; charset=utf-8", include_str!("dashboard/chart.js")),
    ("/assets/views.js", "text/javascript; charset=utf-8", include_str!("dashboard/views.js")),
    (
        "/assets/overview.js",
        "text/javascript; charset=utf-8",
        include_str!("dashboard/overview.js"),
    ),
    ("/assets/words.js", "text/javascript; charset=utf-8", include_str!("dashboard/words.js")),
    ("/assets/begin.js", "text/javascript; charset=utf-8", include_str!("dashboard/begin.js")),
    ("/assets/studies.js", "text/javascript; charset=utf-8", include_str!("dashboard/studies.js")),
    ("/assets/hosts.js", "text/javascript; charset=utf-8", include_str!("dashboard/hosts.js")),
    ("/assets/safe.js", "text/javascript; charset=utf-8", include_str!("dashboard/safe.js")),
    ("/assets/tokens.js", "text/javascript; charset=utf-8", include_str!("dashboard/tokens.js")),
    ("/assets/main.js", "text/javascript; charset=utf-8", include_str!("dashboard/main.js")),
];

/// Its files. They are for everybody: what they show needs a token.
pub(crate) fn router() -> Router<Arc<Engine>> {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, text)| {
        router.route(path, get(move || async move { ([(CONTENT_TYPE, kind)], text) }))
    })
}

//! Kinds of content by the ends of files' names (IANA's media types).

use std::path::Path;

/// The kind of a file's content.
pub(crate) fn kind(file: &Path) -> &'static str {
    let end = file.extension().and_then(|end| end.to_str()).unwrap_or_default();
    match end.to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "txt" | "md" => "text/plain; charset=utf-8",
        "json" => "application/json",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "mp4" | "m4v" => "video/mp4",
        "m4s" => "video/iso.segment",
        "webm" => "video/webm",
        "ts" => "video/mp2t",
        "mp3" => "audio/mpeg",
        "m4a" => "audio/mp4",
        "mpd" => "application/dash+xml",
        "m3u8" => "application/vnd.apple.mpegurl",
        _ => "application/octet-stream",
    }
}

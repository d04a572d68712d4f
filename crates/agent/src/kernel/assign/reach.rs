//! The network namespaces that a walk over sockets reaches. To enter one takes capabilities.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use crate::error::Error;
use crate::kernel::places::{netns_cookie_of, within_file};

/// Device and number of a file.
fn number(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|of| (of.dev(), of.ino()))
}

/// The namespace of this thread (`None`) and those of these files that exist, each once.
pub(crate) fn near_places(files: &BTreeSet<PathBuf>) -> Vec<Option<File>> {
    let own = File::open("/proc/thread-self/ns/net").ok();
    let mut seen: BTreeSet<_> = own.as_ref().and_then(number).into_iter().collect();
    // What is no namespace cannot be entered.
    let is_one = |file: &File| netns_cookie_of(file).is_ok();
    let others = files.iter().filter_map(|path| File::open(path).ok().filter(is_one));
    let others = others.filter(|file| number(file).is_some_and(|number| seen.insert(number)));
    std::iter::once(None).chain(others.map(Some)).collect()
}

/// All others.
pub(crate) fn far_places(near: &[Option<File>]) -> Vec<File> {
    let near: BTreeSet<_> = near.iter().flatten().filter_map(number).collect();
    let all = trimtab_kernel::network_namespaces().into_iter().map(|(_, file)| file);
    all.filter(|file| number(file).is_some_and(|number| !near.contains(&number))).collect()
}

/// Does something in a network namespace, in this thread's without one.
pub(crate) fn at<T: Send>(
    place: Option<&File>,
    work: impl FnOnce() -> Result<T, trimtab_kernel::Error> + Send,
) -> Result<T, Error> {
    let Some(place) = place else { return Ok(work()?) };
    let done = within_file(place, || Ok(work()));
    Ok(done.map_err(|e| Error::system("enter a network namespace", e))??)
}

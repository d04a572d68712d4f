//! How often an eBPF program ran and how long, as its file descriptor tells while [`Statistics`] are
//! on: cheap enough to look after every response.
//!
//! [`Statistics`]: crate::programs::Statistics

use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};

use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore as _, MapHandle, Program};

use crate::{BenchError, FOLDER, system};

/// The numbers of this benchmark's programs by their names: those that use its slots, or share a
/// map with one that does. Another datapath may have some of the same name.
pub(crate) fn numbers(names: &[&str]) -> Result<Vec<u32>, BenchError> {
    let slots = MapHandle::from_pinned_path(format!("{FOLDER}/tt_slots"));
    let slots = slots.and_then(|map| map.info()).map_err(system("find the slots"))?.info.id;
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    let all: Vec<_> = ProgInfoIter::with_query_opts(options).collect();
    let with_slots = all.iter().filter(|program| program.map_ids.contains(&slots));
    let maps: Vec<u32> = with_slots.flat_map(|program| program.map_ids.clone()).collect();
    let number = |name: &&str| {
        let mut ours =
            all.iter().filter(|program| program.map_ids.iter().any(|map| maps.contains(map)));
        let same = ours.find(|program| program.name.to_string_lossy() == **name);
        same.map(|program| program.id).ok_or_else(|| system("find a program")(name))
    };
    names.iter().map(number).collect()
}

/// The programs of one algorithm, of which the first runs with every acknowledgement.
pub(crate) struct Programs(Vec<OwnedFd>);

impl Programs {
    /// By their numbers.
    pub(crate) fn open(numbers: &[u32]) -> Result<Self, BenchError> {
        let open = |number: &u32| Program::fd_from_id(*number).map_err(system("open a program"));
        Ok(Self(numbers.iter().map(open).collect::<Result<_, _>>()?))
    }

    /// Acknowledgements so far, and nanoseconds of all programs.
    pub(crate) fn ran(&self) -> Result<(u64, u64), BenchError> {
        let mut sum = (0, 0);
        for (i, program) in self.0.iter().enumerate() {
            let file = format!("/proc/self/fdinfo/{}", program.as_raw_fd());
            let text = fs::read_to_string(file).map_err(system("look at a program"))?;
            let value = |name: &str| {
                let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
                let value = lines.next().and_then(|rest| rest.trim().parse::<u64>().ok());
                value.ok_or_else(|| system("look at a program")(name))
            };
            if i == 0 {
                sum.0 = value("run_cnt:")?;
            }
            sum.1 += value("run_time_ns:")?;
        }
        Ok(sum)
    }
}

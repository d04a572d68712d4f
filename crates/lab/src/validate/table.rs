//! The comparison as a page of the book.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::compare::{Cell, Comparison, Group, Metric, Spread, median};
use super::explain::reason;
use super::{LinkReplay, Validation};

/// A cell this many bands off needs an explanation.
const FAR: f64 = 3.0;

/// The median over the cells of one algorithm and kind.
struct Row<'a> {
    label: &'static str,
    cca: &'a str,
    cells: usize,
    /// Per metric, in bands; `None` where no cell has the metric.
    bands: [Option<f64>; 4],
}

impl Validation {
    /// Whether every link log was replayed without a difference, the median of every metric over
    /// all cells of an algorithm is in its band, so is that over the cells with the losses of the
    /// measured runs and that over the cells of Trimtab's own emulator, and every cell that is more
    /// than three bands off is within the spread of its repeats or has an explanation.
    pub fn holds(&self) -> bool {
        self.links.iter().all(|link| link.mismatches == 0)
            && self.totals().iter().all(|row| row.bands.iter().flatten().all(|&bands| bands <= 1.0))
            && self
                .judged_alone()
                .iter()
                .all(|row| row.bands.iter().flatten().all(|&bands| bands <= 1.0))
            && self.far().iter().all(|(cell, c)| self.why(cell, c).is_some())
    }

    /// The whole comparison as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut page = String::from(
            "# The simulator compared with Linux\n\n\
             What the TCP of Linux 6.18 did over links emulated by Mahimahi, and what the simulator \
             does in the same cells: the same traces, delays, buffers, random loss, requests and \
             windows of measurement. This page is the output of\n\n\
             ```console\n\
             $ trimtab validate --ground-truth DIR --traces DIR > docs/reference/validation.md\n\
             ```\n\n\
             which ends with exit code 1 when a median leaves its band. Cells with random loss or \
             several flows are simulated with several seeds; measured cells have two or three repeats.\n\n",
        );
        self.write_links(&mut page);
        self.write_medians(&mut page);
        self.write_worst(&mut page);
        self.write_cells(&mut page);
        page
    }

    fn write_links(&self, page: &mut String) {
        page.push_str(
            "## The link, packet by packet\n\n\
             The arrivals of each log through the link model: departures (time, size, delay), drops \
             and opportunities compared one by one.\n\n\
             | log | arrivals | departures | drops | differences |\n|---|---|---|---|---|\n",
        );
        for LinkReplay { name, arrivals, departures, drops, mismatches } in &self.links {
            line(
                page,
                format_args!("| {name} | {arrivals} | {departures} | {drops} | {mismatches} |"),
            );
        }
    }

    fn write_medians(&self, page: &mut String) {
        page.push_str(
            "\n## Medians over the cells\n\n\
             Of the absolute difference; the band in brackets. It holds for all cells of an algorithm \
             (**all**); the kinds of cells below show where the differences are.\n\n\
             Two repeats with 1% random loss have 28 losses each at 150 ms and 150 at 20 ms, and where \
             these fall decides the goodput of CUBIC and Reno: two repeats differ by 6% (20 ms) to 20% \
             (150 ms). A simulator without any error that draws its own losses would therefore show \
             medians of 4 to 5% there, and more than the band in one case of four. So these cells are \
             compared twice: with losses drawn anew, and with the packets lost that the measured run \
             lost, which its series of retransmissions tells. The latter has to keep the band; it is \
             what says whether the algorithm and the transport are right.\n\n\
             The cells over Trimtab's emulator (`emu-`) are compared by themselves. They are recordings \
             of the kernel's BBR, 24 s each, which the command brings along (`emu-bench record` makes \
             them). A link that is a program shapes BBR's queue, so the simulator has both programs. \
             BBR paces at 1% less than its largest rate of ten rounds (`bbr_pacing_margin`), and 1% of \
             20 ms is 0.2 ms.\n\n\
             Mahimahi's programs sleep for whole milliseconds. How late they wake up was measured. That a \
             packet takes 50 us was chosen by the cells at 48 Mbit/s and 20 ms.\n\n\
             Trimtab's emulator writes the packets of a burst one after the other, 5 us each. Between \
             two acknowledgements of a burst the sender may send, if its timer is late. That packet \
             counts the second acknowledgement twice, which is 2.5% of the rate at 48 Mbit/s and 20 ms. \
             Whether the receiver answers every second packet was measured with each run. The sender's \
             timer is taken to be as late as the emulator's, which ran on the same host: from nothing to \
             its 99th percentile in that run, all alike. Nothing was chosen by the cells.\n\n\
             | cells | algorithm | number |",
        );
        for metric in Metric::ALL {
            let _ = write!(page, " {} ({}) |", metric.label(), metric.band());
        }
        page.push_str("\n|---|---|---|---|---|---|---|\n");
        for row in self.totals().iter().chain(&self.rows()) {
            let _ = write!(page, "| {} | {} | {} |", row.label, row.cca, row.cells);
            for (metric, bands) in Metric::ALL.into_iter().zip(row.bands) {
                match bands {
                    Some(bands) => {
                        let out = if bands > 1.0 { " **out**" } else { "" };
                        let _ = write!(page, " {}{out} |", of_band(metric, bands));
                    }
                    None => page.push_str(" |"),
                }
            }
            page.push('\n');
        }
    }

    fn write_worst(&self, page: &mut String) {
        page.push_str("\n## Cells that are more than three bands off\n\n");
        let far = self.far();
        if far.is_empty() {
            page.push_str("None.\n");
            return;
        }
        page.push_str(
            "| cell | metric | Linux | simulator | bands | why |\n|---|---|---|---|---|---|\n",
        );
        for (cell, c) in far {
            let why = self.why(cell, c).unwrap_or_else(|| "**not explained**".to_owned());
            let (linux, ours) = (spread(&c.measured), spread(&c.simulated));
            let (name, metric, bands) = (&cell.name, c.metric.label(), c.bands());
            line(
                page,
                format_args!("| {name} | {metric} | {linux} | {ours} | {bands:+.1} | {why} |"),
            );
        }
    }

    /// Why a cell may be far off: a reason that is written down, its random losses, or chance.
    fn why(&self, cell: &Cell, c: &Comparison) -> Option<String> {
        if let Some(reason) = reason(cell, c.metric) {
            return Some(reason.to_owned());
        }
        let replayed =
            self.cells.iter().find(|r| r.group == Group::BulkReplayed && r.name == cell.name);
        let of_metric =
            |r: &&Cell| r.comparisons.iter().find(|other| other.metric == c.metric).cloned();
        match replayed.filter(|_| cell.group == Group::BulkLossy).as_ref().and_then(of_metric) {
            Some(same) if same.bands().abs() <= 1.0 => Some(format!(
                "where the random losses fell: with those of the measured runs it is {:+.1} bands off",
                same.bands()
            )),
            _ if c.within_spread() => Some("within the spread of the repeats".to_owned()),
            _ => None,
        }
    }

    fn write_cells(&self, page: &mut String) {
        page.push_str(
            "\n## Every cell\n\n\
             Linux and simulator; in brackets the range over repeats and over seeds; then the \
             difference in bands.\n",
        );
        for group in Group::ALL {
            let cells: Vec<_> = self.cells.iter().filter(|cell| cell.group == group).collect();
            let Some(first) = cells.first() else { continue };
            let _ = write!(page, "\n### {}\n\n| cell |", capitalised(group.label()));
            for c in &first.comparisons {
                let _ = write!(page, " {} | simulator | bands |", c.metric.label());
            }
            page.push_str("\n|---|");
            page.push_str(&"---|---|---|".repeat(first.comparisons.len()));
            page.push('\n');
            for cell in cells {
                let _ = write!(page, "| {} |", cell.name);
                for c in &cell.comparisons {
                    let (linux, ours) = (spread(&c.measured), spread(&c.simulated));
                    let _ = write!(page, " {linux} | {ours} | {:+.1} |", c.bands());
                }
                page.push('\n');
            }
        }
    }

    /// Per algorithm, over all its cells; mixes of algorithms together.
    fn totals(&self) -> Vec<Row<'_>> {
        let ccas: BTreeSet<&str> = self.cells.iter().map(|cell| mix(&cell.cca)).collect();
        // Each cell over Mahimahi counts once.
        let cells = |cca| -> Vec<&Cell> {
            let once = self.cells.iter().filter(|cell| !is_judged_alone(cell.group));
            once.filter(|cell| mix(&cell.cca) == cca).collect()
        };
        ccas.into_iter().map(|cca| Row::new("**all**", cca, &cells(cca))).collect()
    }

    /// Per kind of cell and algorithm.
    fn rows(&self) -> Vec<Row<'_>> {
        self.rows_of(Group::ALL)
    }

    fn rows_of(&self, groups: impl IntoIterator<Item = Group>) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        for group in groups {
            let of_group = || self.cells.iter().filter(move |cell| cell.group == group);
            let ccas: BTreeSet<&str> = of_group().map(|cell| mix(&cell.cca)).collect();
            for cca in ccas {
                let cells: Vec<&Cell> = of_group().filter(|cell| mix(&cell.cca) == cca).collect();
                rows.push(Row::new(group.label(), cca, &cells));
            }
        }
        rows
    }

    /// Per algorithm, the kinds of cells that have to keep the bands by themselves.
    fn judged_alone(&self) -> Vec<Row<'_>> {
        self.rows_of(Group::ALL.into_iter().filter(|&group| is_judged_alone(group)))
    }

    /// The comparisons that are far off, farthest first.
    fn far(&self) -> Vec<(&Cell, &Comparison)> {
        let all =
            self.cells.iter().flat_map(|cell| cell.comparisons.iter().map(move |c| (cell, c)));
        let mut far: Vec<_> = all.filter(|(_, c)| c.bands().abs() > FAR).collect();
        far.sort_by(|a, b| b.1.bands().abs().total_cmp(&a.1.bands().abs()));
        far
    }
}

impl<'a> Row<'a> {
    fn new(label: &'static str, cca: &'a str, cells: &[&Cell]) -> Self {
        let bands = Metric::ALL.map(|metric| {
            let all = cells.iter().flat_map(|cell| &cell.comparisons);
            let of_metric = all.filter(|c| c.metric == metric);
            let values: Vec<f64> = of_metric.map(|c| c.bands().abs()).collect();
            (!values.is_empty()).then(|| median(values))
        });
        Self { label, cca, cells: cells.len(), bands }
    }
}

/// Cells that were measured in another way than the rest, or are there a second time.
fn is_judged_alone(group: Group) -> bool {
    matches!(group, Group::BulkReplayed | Group::Emulated)
}

/// Each mix of competing flows is a single cell or a few, so those count together.
fn mix(cca: &str) -> &str {
    if cca.contains('+') { "several" } else { cca }
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(page, "{text}");
}

/// A distance in bands in the metric's own terms.
fn of_band(metric: Metric, bands: f64) -> String {
    match metric {
        Metric::Goodput => format!("{:.2}%", 5.0 * bands),
        Metric::QueueDelay => format!("{bands:.2} of the band"),
        Metric::Retransmits => format!("{:.3} points", 0.5 * bands),
        Metric::CompletionTime => format!("{:.1}%", 10.0 * bands),
    }
}

/// Mean and range, with as many digits as mean something.
fn spread(s: &Spread) -> String {
    let digits = match s.mean {
        m if m >= 1000.0 => 0,
        m if m >= 100.0 => 1,
        m if m >= 10.0 => 2,
        _ => 3,
    };
    let Spread { mean, min, max, repeats, .. } = *s;
    if repeats > 1 {
        format!("{mean:.digits$} ({min:.digits$}–{max:.digits$})")
    } else {
        format!("{mean:.digits$}")
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(name: &str, simulated: f64) -> Cell {
        let goodput = Comparison {
            metric: Metric::Goodput,
            measured: Spread::of([10.0, 10.0]),
            simulated: Spread::of([simulated; 3]),
        };
        let (name, cca) = (name.to_owned(), "cubic".to_owned());
        Cell { name, cca, group: Group::Bulk, comparisons: vec![goodput] }
    }

    fn validation(simulated: [f64; 3]) -> Validation {
        let cells = ["a", "b", "c"].into_iter().zip(simulated).map(|(n, s)| cell(n, s)).collect();
        Validation { schema: "trimtab.validate/1", links: Vec::new(), cells }
    }

    #[test]
    fn it_holds_by_the_medians_and_no_cell_may_be_far_off_without_a_reason() {
        assert!(validation([10.0, 10.4, 11.0]).holds(), "the median is 4% off");
        assert!(!validation([10.0, 10.6, 11.0]).holds(), "the median is 6% off");
        assert!(!validation([10.0, 10.1, 12.0]).holds(), "one cell is 20% off");
        let mut broken = validation([10.0; 3]);
        let name = "log".to_owned();
        broken.links =
            vec![LinkReplay { name, arrivals: 1, departures: 1, drops: 0, mismatches: 1 }];
        assert!(!broken.holds(), "a packet left at another time");
    }

    #[test]
    fn the_page_names_what_is_out() {
        let page = validation([10.0, 10.6, 12.0]).to_markdown();
        assert!(page.contains("| cubic | 3 | 6.00% **out** |"), "{page}");
        assert!(page.contains("**not explained**"), "{page}");
        assert!(!validation([10.0; 3]).to_markdown().contains("**out**"), "all is well");
    }
}

//! `trimtab agent top`: a live view of the agent and its busiest connections.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGTERM};

use crate::doors::control::{ask_flows, ask_status};
use crate::doors::table::FLOW;
use crate::doors::view::{FlowView, Status};
use crate::error::Error;

/// What one look shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// How the agent does.
    pub status: Status,
    /// Its connections, the busiest first.
    pub flows: Vec<FlowView>,
}

/// What the connections are sorted by, the most first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sort {
    #[default]
    Throughput,
    Rtt,
    Loss,
    Decisions,
    Newest,
}

impl Sort {
    fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Rtt => "round-trip time",
            Self::Loss => "loss",
            Self::Decisions => "decisions",
            Self::Newest => "newest",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Throughput => Self::Rtt,
            Self::Rtt => Self::Loss,
            Self::Loss => Self::Decisions,
            Self::Decisions => Self::Newest,
            Self::Newest => Self::Throughput,
        }
    }

    fn key(self, flow: &FlowView) -> f64 {
        let known = |value: Option<f64>| value.unwrap_or(-1.0);
        match self {
            Self::Throughput => known(flow.throughput_mbps.filter(|_| flow.active)),
            Self::Rtt => known(flow.rtt_ms),
            Self::Loss => known(flow.loss),
            Self::Decisions => flow.decisions as f64,
            Self::Newest => -flow.age_s,
        }
    }

    fn sort(self, flows: &mut [FlowView]) {
        flows.sort_by(|a, b| self.key(b).total_cmp(&self.key(a)).then(a.id.cmp(&b.id)));
    }
}

/// Asks the agent at a socket for a look.
///
/// # Errors
/// None answers there.
pub fn look(socket: &Path) -> Result<Look, Error> {
    let status = ask_status(socket)?;
    let mut flows = ask_flows(socket)?;
    Sort::default().sort(&mut flows);
    Ok(Look { status, flows })
}

/// What the user has chosen.
#[derive(Debug, Default)]
struct Screen {
    sort: Sort,
    /// Connections above the first that is shown.
    scrolled: usize,
    paused: bool,
}

/// What to do after a key.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Go,
    End,
}

impl Screen {
    fn on_key(&mut self, key: KeyEvent) -> Next {
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Next::End,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Next::End;
            }
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::Down => self.scrolled += 1,
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(20),
            KeyCode::PageDown => self.scrolled += 20,
            KeyCode::Home => self.scrolled = 0,
            _ => {}
        }
        Next::Go
    }

    fn draw(&mut self, frame: &mut Frame<'_>, look: &mut Look) {
        self.sort.sort(&mut look.flows);
        let width = usize::from(frame.area().width);
        let head: Vec<Line<'_>> = look.status.lines(width).into_iter().map(Line::raw).collect();
        let [above, list, below] = Layout::vertical([
            Constraint::Length(head.len() as u16),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(head), above);
        let rows = usize::from(list.height.saturating_sub(1));
        self.scrolled = self.scrolled.min(look.flows.len().saturating_sub(rows));
        let shown = look.flows.iter().skip(self.scrolled).take(rows);
        let reversed = Style::new().add_modifier(Modifier::REVERSED);
        let places = FLOW.fitting(width);
        let cells = |flow: &FlowView| {
            let cells = flow.cells();
            Row::new(
                places.iter().map(|place| Cell::from(cells[*place].clone())).collect::<Vec<_>>(),
            )
        };
        let columns: Vec<_> = places.iter().map(|place| FLOW.all[*place]).collect();
        let table = Table::new(
            shown.map(cells),
            columns.iter().map(|(_, width)| Constraint::Length(*width as u16)),
        )
        .header(Row::new(columns.iter().map(|(name, _)| *name)).style(reversed));
        frame.render_widget(table, list);
        let keys = format!(
            "sorted by {}{} · s sort · p pause · arrows scroll · q quit",
            self.sort.name(),
            if self.paused { ", paused" } else { "" }
        );
        frame.render_widget(Paragraph::new(keys), below);
    }
}

/// Shows the agent at a socket until the user ends it, with a new look after each interval.
///
/// # Errors
/// No agent answers, or standard output is no terminal.
pub fn top(socket: &Path, interval: Duration) -> Result<(), Error> {
    let mut now = look(socket)?;
    // A signal ends it as `q` does, so that the terminal is left as it was.
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended))
            .map_err(|e| Error::system("wait for signals", e))?;
    }
    let mut terminal =
        ratatui::try_init().map_err(|e| Error::system("draw on this terminal", e))?;
    let done = (|| {
        let fail = |e: std::io::Error| Error::system("draw on this terminal", e);
        let mut screen = Screen::default();
        let mut looked = Instant::now();
        while !ended.load(Ordering::Relaxed) {
            terminal.draw(|frame| screen.draw(frame, &mut now)).map_err(fail)?;
            if event::poll(interval.saturating_sub(looked.elapsed())).map_err(fail)?
                && let Event::Key(key) = event::read().map_err(fail)?
                && key.kind == KeyEventKind::Press
                && screen.on_key(key) == Next::End
            {
                break;
            }
            if looked.elapsed() >= interval {
                looked = Instant::now();
                if !screen.paused {
                    now = look(socket)?;
                }
            }
        }
        Ok(())
    })();
    ratatui::restore();
    done
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::arms::compare::{Compared, Comparison};
    use crate::config::Mode;
    use crate::connection::Standing;
    use crate::core::Tally;
    use crate::doors::view::RuleStatus;
    use trimtab_fleet::experiment::Effect;
    use trimtab_steer::safety::Arm;

    fn flow(id: u64, mbps: f64, rtt_ms: f64) -> FlowView {
        FlowView {
            id,
            local: "10.0.0.1:443".to_owned(),
            remote: format!("192.0.2.{id}:5000"),
            rule: "web".to_owned(),
            arm: Arm::Treated,
            standing: Standing::Steered,
            active: true,
            algorithm: "copa".to_owned(),
            next: None,
            switches: 0,
            switch_us: None,
            delta: Some(0.1),
            rtt_ms: Some(rtt_ms),
            queueing_ms: Some(1.0),
            throughput_mbps: Some(mbps),
            loss: Some(0.0),
            score: None,
            hinted: false,
            age_s: 1.0,
            decisions: 0,
            former: None,
        }
    }

    fn look() -> Look {
        let status = Status {
            orders: Vec::new(),
            comparisons: Vec::new(),
            rollout: None,
            trips: std::collections::BTreeMap::new(),
            schema: String::new(),
            version: "0.1.0".to_owned(),
            pid: 7,
            config: "agent.toml".to_owned(),
            mode: Mode::Apply,
            algorithm: "trimtab_copa".to_owned(),
            programs: crate::doors::view::Programs::default(),
            up_s: 3.0,
            open: 3,
            active: 3,
            closing: 0,
            adopted: 0,
            ahead: 0,
            reports: 0,
            cpu: 0.0,
            stretch: 1.0,
            troubles: Vec::new(),
            rules: Vec::new(),
            assigned: Vec::new(),
            datapath: Default::default(),
            edge: None,
        };
        Look { status, flows: vec![flow(1, 2.0, 90.0), flow(2, 9.0, 30.0), flow(3, 5.0, 50.0)] }
    }

    fn drawn(screen: &mut Screen, height: u16) -> Vec<String> {
        drawn_in(screen, 100, height)
    }

    fn drawn_in(screen: &mut Screen, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame, &mut look())).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| row(y).trim_end().to_owned()).collect()
    }

    /// The numbers of the connections from above.
    fn order(lines: &[String]) -> Vec<&str> {
        let rows = lines.iter().filter(|line| line.contains("192.0.2."));
        rows.map(|row| row.split(' ').next().unwrap()).collect()
    }

    #[test]
    fn the_busiest_come_first_until_a_key_says_otherwise() {
        let mut screen = Screen::default();
        let lines = drawn(&mut screen, 12);
        assert!(lines[0].starts_with("trimtab agent 0.1.0, process 7"), "{lines:?}");
        assert_eq!(order(&lines), ["2", "3", "1"]);
        assert!(lines[11].starts_with("sorted by throughput"), "{lines:?}");
        assert_eq!(screen.on_key(KeyCode::Char('s').into()), Next::Go);
        assert_eq!(order(&drawn(&mut screen, 12)), ["1", "3", "2"]);
        assert_eq!(screen.on_key(KeyCode::Char('q').into()), Next::End);
    }

    #[test]
    fn the_third_arm_is_shown_with_the_estimate_and_its_interval() {
        let mut look = look();
        let of = |arm| RuleStatus {
            rule: "web".to_owned(),
            arm,
            open: 3,
            active: 2,
            closing: 0,
            tally: Tally::default(),
        };
        look.status.rules = vec![of(Arm::Treated), of(Arm::Holdback), of(Arm::Former)];
        look.status.comparisons = vec![Comparison {
            rule: "web".to_owned(),
            control: Arm::Former,
            over: true,
            networks: 12,
            metrics: vec![Compared {
                metric: "score".to_owned(),
                steered: 2.2,
                control: 2.0,
                change: Some(Effect { value: 0.1, low: 0.05, high: 0.15 }),
                difference: None,
                pairs: 24,
            }],
        }];
        let mut terminal = Terminal::new(TestBackend::new(120, 20)).unwrap();
        terminal.draw(|frame| Screen::default().draw(frame, &mut look)).unwrap();
        let text = terminal.backend().to_string();
        assert!(text.contains("steered vs. former arm (12 networks, 24 pairs)"), "{text}");
        assert!(text.contains("score 2.2000 vs. 2.0000, +10.0% (+5.0 to +15.0%)"), "{text}");
        for arm in ["treated", "holdback", "former"] {
            assert!(text.lines().any(|line| line.contains("web") && line.contains(arm)), "{text}");
        }
    }

    #[test]
    fn a_narrow_window_shows_fewer_columns_and_cuts_none() {
        let lines = drawn_in(&mut Screen::default(), 60, 14);
        let head = lines.iter().find(|line| line.contains("remote")).unwrap();
        assert_eq!(
            head.split_whitespace().collect::<Vec<_>>(),
            ["remote", "port", "standing", "rtt", "ms", "Mbit/s"]
        );
        assert!(lines[0].ends_with("mode apply"), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("192.0.2.2:5000")), "{lines:?}");
    }

    #[test]
    fn a_small_window_scrolls_and_stops_at_the_last_connection() {
        let mut screen = Screen::default();
        assert_eq!(order(&drawn(&mut screen, 7)), ["2", "3"]);
        for _ in 0..5 {
            screen.on_key(KeyCode::Down.into());
        }
        assert_eq!(order(&drawn(&mut screen, 7)), ["3", "1"]);
    }
}

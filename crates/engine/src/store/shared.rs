//! The store of several engines: tables in PostgreSQL, where each engine keeps what it is sent, or
//! which reports reach by way of a broker.

use std::sync::Arc;
use trimtab_fleet_client::{Audit, Counts, Damaged, Name};

use super::Notices;
use super::{
    AuditCheck, AuditMark, Batch, Begun, Candidate, CellRow, Chained, ChangeSafe, Decide, Decided,
    Due, InForce, KeptToken, Line, Listed, MemberRow, NewStudy, Order, Outcome, Postgres, Rotation,
    Row, Search, Store, StoreError, Study, StudyKind, StudyStep, Tell, Turn, Use,
};
use crate::broker::{Broker, Keeper};
use crate::metrics::Latency;

/// Rounds of reports on their way at a time.
const DOORS: usize = 4;

/// How engines share what comes in, and what changes.
enum Way {
    /// Each keeps what it is sent, and the database passes on what changes.
    Database(Notices),
    /// The broker passes on both.
    Broker(Box<Broker>),
}

/// What several engines share.
pub(crate) struct Shared {
    way: Way,
    tables: Arc<Postgres>,
}

impl Shared {
    /// Shares tables alone.
    pub(crate) fn tables(tables: Postgres) -> Result<Self, StoreError> {
        let tables = Arc::new(tables);
        Ok(Self { way: Way::Database(Notices::new(Arc::clone(&tables))?), tables })
    }

    /// Shares these from now on: takes reports that any engine was sent.
    pub(crate) fn with_broker(tables: Postgres, broker: Broker) -> Self {
        let tables = Arc::new(tables);
        let keep = Arc::clone(&tables);
        let keeper: Keeper = Arc::new(move |batches| keep.accept(batches));
        broker.take(&keeper);
        Self { way: Way::Broker(Box::new(broker)), tables }
    }

    fn tell(&self, changed: &[Name]) {
        match &self.way {
            Way::Database(notices) => notices.tell(changed),
            Way::Broker(broker) => broker.tell(changed),
        }
    }
}

impl Store for Shared {
    fn way(&self) -> String {
        match &self.way {
            Way::Database(_) => self.tables.place().to_owned(),
            Way::Broker(broker) => {
                format!("{}, reports by {}", self.tables.place(), broker.place())
            }
        }
    }

    fn doors(&self) -> usize {
        DOORS
    }

    fn on_change(&self, tell: Tell) {
        match &self.way {
            Way::Database(notices) => notices.on_change(tell),
            Way::Broker(broker) => broker.on_change(tell),
        }
    }

    fn accept(&self, batches: &[Batch]) -> Result<Vec<Outcome>, StoreError> {
        match &self.way {
            Way::Database(_) => self.tables.accept(batches),
            Way::Broker(broker) => broker.hand(batches),
        }
    }

    fn close(
        &self,
        due: &Due<'_>,
        decide: &mut dyn Decide,
    ) -> Result<(usize, Vec<Name>), StoreError> {
        let (closed, changed) = self.tables.close(due, decide)?;
        self.tell(&changed);
        Ok((closed, changed))
    }

    fn unknown(&self, names: &[Name]) -> Result<Vec<Name>, StoreError> {
        self.tables.unknown(names)
    }

    fn damaged(&self) -> Vec<Damaged> {
        self.tables.damaged()
    }

    fn reset(
        &self,
        names: &[Name],
        who: &str,
        detail: &str,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        self.tables.reset(names, who, detail, now_ms)
    }

    fn in_force(&self, names: &[Name]) -> Result<Vec<InForce>, StoreError> {
        self.tables.in_force(names)
    }

    fn aggregates(&self, search: &Search) -> Result<Vec<Listed>, StoreError> {
        self.tables.aggregates(search)
    }

    fn number(&self, name: &Name) -> Result<Option<i64>, StoreError> {
        self.tables.number(name)
    }

    fn aggregate(&self, name: &Name) -> Result<Option<Row>, StoreError> {
        self.tables.aggregate(name)
    }

    fn learnt(&self, aggregate: i64) -> Result<Option<String>, StoreError> {
        self.tables.learnt(aggregate)
    }

    fn decisions(
        &self,
        aggregate: i64,
        before: i64,
        limit: usize,
    ) -> Result<Vec<Decided>, StoreError> {
        self.tables.decisions(aggregate, before, limit)
    }

    fn order(&self, orders: &[(Row, Order)]) -> Result<bool, StoreError> {
        let done = self.tables.order(orders)?;
        if done {
            let names: Vec<Name> = orders.iter().map(|(seen, _)| seen.name.clone()).collect();
            self.tell(&names);
        }
        Ok(done)
    }

    fn audit(
        &self,
        before: i64,
        refused: Option<bool>,
        limit: usize,
    ) -> Result<Vec<Audit>, StoreError> {
        self.tables.audit(before, refused, limit)
    }

    fn audit_after(&self, line: i64, limit: usize) -> Result<Vec<Chained>, StoreError> {
        self.tables.audit_after(line, limit)
    }

    fn take_turn(&self, turn: &Turn<'_>) -> Result<Option<i64>, StoreError> {
        self.tables.take_turn(turn)
    }

    fn write_down(&self, lines: &[Line]) -> Result<(), StoreError> {
        self.tables.write_down(lines)
    }

    fn safe_orders(&self) -> Result<String, StoreError> {
        self.tables.safe_orders()
    }

    fn change_safe_orders(
        &self,
        change: &mut ChangeSafe<'_>,
    ) -> Result<Result<(), String>, StoreError> {
        self.tables.change_safe_orders(change)
    }

    fn check_audit(&self, known: Option<&AuditMark>) -> Result<AuditCheck, StoreError> {
        self.tables.check_audit(known)
    }

    fn forget_audit(&self, before_ms: i64, now_ms: i64) -> Result<usize, StoreError> {
        self.tables.forget_audit(before_ms, now_ms)
    }

    fn tokens(&self) -> Result<Vec<KeptToken>, StoreError> {
        self.tables.tokens()
    }

    fn add_token(&self, token: &KeptToken, who: &str) -> Result<Option<i64>, StoreError> {
        self.tables.add_token(token, who)
    }

    fn rotate_token(&self, new: &Rotation, who: &str) -> Result<bool, StoreError> {
        self.tables.rotate_token(new, who)
    }

    fn used(&self, uses: &[Use]) -> Result<(), StoreError> {
        self.tables.used(uses)
    }

    fn revoke_token(&self, name: &str, who: &str, now_ms: i64) -> Result<bool, StoreError> {
        self.tables.revoke_token(name, who, now_ms)
    }

    fn studies(&self, service: Option<&str>, kind: StudyKind) -> Result<Vec<Study>, StoreError> {
        self.tables.studies(service, kind)
    }

    fn active_studies(&self, service: &str) -> Result<Vec<Arc<Study>>, StoreError> {
        self.tables.active_studies(service)
    }

    fn candidates(&self, service: &str, from: i64) -> Result<Vec<Candidate>, StoreError> {
        self.tables.candidates(service, from)
    }

    fn begin(&self, new: &NewStudy) -> Result<Begun, StoreError> {
        self.tables.begin(new)
    }

    fn step(&self, study: &Study, step: &StudyStep) -> Result<bool, StoreError> {
        self.tables.step(study, step)
    }

    fn members(&self, study: i64) -> Result<Vec<MemberRow>, StoreError> {
        self.tables.members(study)
    }

    fn cells(&self, study: i64) -> Result<Vec<CellRow>, StoreError> {
        self.tables.cells(study)
    }

    fn time(&self, latency: Latency) {
        self.tables.time(latency);
    }

    fn edges_seen(&self) -> Result<Vec<(i64, i64)>, StoreError> {
        self.tables.edges_seen()
    }

    fn counts(&self) -> Result<Counts, StoreError> {
        self.tables.counts()
    }

    fn forget(&self, before_ms: i64, limit: usize) -> Result<usize, StoreError> {
        self.tables.forget(before_ms, limit)
    }
}

//! The store in memory: one lock around everything, so each transition is atomic.

mod rows;

use super::{Conflict, Effect, End, KeyId, Kind, Pending, Phase, Refused, Row, RowId, Store};
use crate::reference::core::{self, Claim, LostLease, OwnerToken, Record, Terms, Time, Verdict};
use rows::Rows;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Records and rows of one process.
#[derive(Debug, Default)]
pub(in crate::reference) struct Memory {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    records: HashMap<KeyId, Record>,
    rows: Rows,
}

impl Memory {
    /// No method panics half-way through a change, so a poisoned lock guards whole tables too.
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> Pending<'a, T> {
    Box::pin(std::future::ready(Ok(value)))
}

impl Store for Memory {
    fn claim(&self, id: KeyId, request: Claim, terms: Terms) -> Pending<'_, Verdict> {
        let mut tables = self.tables();
        let verdict = core::claim(tables.records.get(&id), &request, &terms);
        if let Verdict::Granted(record) = &verdict {
            tables.records.insert(id, record.clone());
        }
        ready(verdict)
    }

    fn commit_phase(&self, id: KeyId, phase: Phase, terms: Terms) -> Pending<'_, Result<(), Refused>> {
        let Phase { owner, effects, end, now } = phase;
        let mut tables = self.tables();
        let current = tables.records.get(&id);
        let ended = match end {
            End::Point(reached) => core::advance(current, owner, reached, now, &terms),
            End::Answer(answer) => core::complete(current, owner, answer, now, &terms),
        };
        ready(ended.map_err(Refused::from).and_then(|record| {
            tables.rows.apply(effects)?;
            tables.records.insert(id, record);
            Ok(())
        }))
    }

    fn renew(&self, id: KeyId, owner: OwnerToken, now: Time, terms: Terms) -> Pending<'_, Result<(), LostLease>> {
        let mut tables = self.tables();
        let renewed = core::renew(tables.records.get(&id), owner, now, &terms);
        ready(renewed.map(|record| {
            tables.records.insert(id, record);
        }))
    }

    fn release(&self, id: KeyId, owner: OwnerToken) -> Pending<'_, ()> {
        let mut tables = self.tables();
        match core::release(tables.records.get(&id), owner) {
            Ok(None) => drop(tables.records.remove(&id)),
            Ok(Some(record)) => drop(tables.records.insert(id, record)),
            Err(LostLease) => {}
        }
        ready(())
    }

    fn look(&self, id: KeyId) -> Pending<'_, Option<Record>> {
        ready(self.tables().records.get(&id).cloned())
    }

    fn commit(&self, effects: Vec<Effect>) -> Pending<'_, Result<(), Conflict>> {
        ready(self.tables().rows.apply(effects))
    }

    fn list(&self, kind: Kind, tenant: String, reference: String) -> Pending<'_, Vec<Row>> {
        ready(self.tables().rows.list(kind, tenant, reference))
    }

    fn find(&self, id: RowId) -> Pending<'_, Option<Row>> {
        ready(self.tables().rows.find(&id).cloned())
    }

    fn sweep(&self, now: Time) -> Pending<'_, usize> {
        let mut tables = self.tables();
        let before = tables.records.len();
        tables.records.retain(|_, record| !core::expired(record, now));
        ready(before - tables.records.len())
    }
}

//! The store in memory: one lock around everything, so each transition is atomic.

use super::{Completion, KeyId, Payment, Pending, Store};
use crate::reference::core::{self, Claim, LostLease, OwnerToken, Record, Terms, Time, Verdict};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Records and payments of one process.
#[derive(Debug, Default)]
pub(in crate::reference) struct Memory {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    records: HashMap<KeyId, Record>,
    payments: Vec<Payment>,
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

    fn complete(&self, id: KeyId, completion: Completion, terms: Terms) -> Pending<'_, Result<(), LostLease>> {
        let Completion { owner, answer, effects, now } = completion;
        let mut tables = self.tables();
        let completed = core::complete(tables.records.get(&id), owner, answer, now, &terms);
        ready(completed.map(|record| {
            tables.records.insert(id, record);
            tables.payments.extend(effects);
        }))
    }

    fn release(&self, id: KeyId, owner: OwnerToken) -> Pending<'_, ()> {
        let mut tables = self.tables();
        if core::release(tables.records.get(&id), owner).is_ok() {
            tables.records.remove(&id);
        }
        ready(())
    }

    fn look(&self, id: KeyId) -> Pending<'_, Option<Record>> {
        ready(self.tables().records.get(&id).cloned())
    }

    fn commit(&self, effects: Vec<Payment>) -> Pending<'_, ()> {
        self.tables().payments.extend(effects);
        ready(())
    }

    fn payments(&self, tenant: String, reference: String) -> Pending<'_, Vec<Payment>> {
        let tables = self.tables();
        let of = |payment: &&Payment| payment.tenant == tenant && payment.reference == reference;
        ready(tables.payments.iter().filter(of).cloned().collect())
    }

    fn payment(&self, tenant: String, id: String) -> Pending<'_, Option<Payment>> {
        let tables = self.tables();
        ready(tables.payments.iter().find(|payment| payment.tenant == tenant && payment.id == id).cloned())
    }

    fn sweep(&self, now: Time) -> Pending<'_, usize> {
        let mut tables = self.tables();
        let before = tables.records.len();
        tables.records.retain(|_, record| !core::expired(record, now));
        ready(before - tables.records.len())
    }
}

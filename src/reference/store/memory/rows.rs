//! Rows in memory, found by identifier and by reference.

use crate::reference::store::{Conflict, Effect, Kind, Row, RowId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Every row, under the number of its insertion.
#[derive(Debug, Default)]
pub(super) struct Rows {
    next: u64,
    rows: BTreeMap<u64, Row>,
    by_id: HashMap<RowId, u64>,
    by_reference: HashMap<(Kind, String, String), BTreeSet<u64>>,
}

impl Rows {
    /// Makes all changes or, when one of them conflicts, none.
    pub(super) fn apply(&mut self, effects: Vec<Effect>) -> Result<(), Conflict> {
        let mut touched = HashSet::new();
        for effect in &effects {
            let (id, holds) = match effect {
                Effect::Insert(row) => (&row.id, self.find(&row.id).is_none()),
                Effect::Replace { seen, row } => (&row.id, self.find(&row.id).is_some_and(|old| old.tag == *seen)),
                Effect::Remove { id, seen } => (id, self.find(id).is_some_and(|old| old.tag == *seen)),
            };
            // Two changes of one row in one commit: the second one expects a row that is not there.
            if !holds || !touched.insert(id) {
                return Err(Conflict);
            }
        }
        for effect in effects {
            match effect {
                Effect::Insert(row) => self.insert(row),
                Effect::Replace { row, .. } => self.replace(row),
                Effect::Remove { id, .. } => self.remove(&id),
            }
        }
        Ok(())
    }

    fn insert(&mut self, row: Row) {
        let seq = self.next;
        self.next += 1;
        self.by_id.insert(row.id.clone(), seq);
        self.by_reference.entry(reference(&row)).or_default().insert(seq);
        self.rows.insert(seq, row);
    }

    /// A row keeps its place in the order, also when its reference changes.
    fn replace(&mut self, row: Row) {
        let Some(&seq) = self.by_id.get(&row.id) else { return };
        self.by_reference.entry(reference(&row)).or_default().insert(seq);
        let name = reference(&row);
        if let Some(old) = self.rows.insert(seq, row)
            && reference(&old) != name
        {
            self.forget(&reference(&old), seq);
        }
    }

    fn remove(&mut self, id: &RowId) {
        if let Some((seq, row)) = self.by_id.remove(id).and_then(|seq| Some((seq, self.rows.remove(&seq)?))) {
            self.forget(&reference(&row), seq);
        }
    }

    fn forget(&mut self, reference: &(Kind, String, String), seq: u64) {
        if let Some(seqs) = self.by_reference.get_mut(reference) {
            seqs.remove(&seq);
            if seqs.is_empty() {
                self.by_reference.remove(reference);
            }
        }
    }

    pub(super) fn find(&self, id: &RowId) -> Option<&Row> {
        self.by_id.get(id).and_then(|seq| self.rows.get(seq))
    }

    pub(super) fn list(&self, kind: Kind, tenant: String, reference: String) -> Vec<Row> {
        let seqs = self.by_reference.get(&(kind, tenant, reference));
        seqs.into_iter().flatten().filter_map(|seq| self.rows.get(seq)).cloned().collect()
    }
}

fn reference(row: &Row) -> (Kind, String, String) {
    (row.id.kind, row.id.tenant.clone(), row.reference.clone())
}

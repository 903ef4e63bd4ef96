//! A small set of places.

/// How many places a set has. An attempt keeps its place from its first byte until nothing of it can happen any more.
pub(super) const PLACES: usize = 256;

/// A set of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bits([u64; PLACES / 64]);

impl Bits {
    pub(super) fn has(&self, place: u16) -> bool {
        self.0[usize::from(place) / 64] & (1 << (place % 64)) != 0
    }

    pub(super) fn add(&mut self, place: u16) {
        self.0[usize::from(place) / 64] |= 1 << (place % 64);
    }

    pub(super) fn remove(&mut self, place: u16) {
        self.0[usize::from(place) / 64] &= !(1 << (place % 64));
    }

    /// Whether everything in it is in the other set, too.
    pub(super) fn within(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, theirs)| mine & !theirs == 0)
    }
}

/// Gives each of these closed spans a place that no overlapping one has; `None` if there are not enough places.
/// Spans must be sorted by their beginnings.
pub(super) fn places(spans: &[(i64, i64)]) -> Option<Vec<u16>> {
    let mut free: Vec<u16> = (0..PLACES).rev().filter_map(|place| u16::try_from(place).ok()).collect();
    let mut taken = std::collections::BinaryHeap::new();
    let mut given = Vec::with_capacity(spans.len());
    for (from, to) in spans {
        while let Some(std::cmp::Reverse((end, place))) = taken.peek().copied()
            && end < *from
        {
            taken.pop();
            free.push(place);
        }
        let place = free.pop()?;
        taken.push(std::cmp::Reverse((*to, place)));
        given.push(place);
    }
    Some(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_spans_have_places_of_their_own() {
        let given = places(&[(0, 5), (1, 2), (2, 9), (6, 7)]);
        let given = given.unwrap_or_default();
        assert!(given[0] != given[1] && given[1] != given[2] && given[0] != given[2] && given[2] != given[3]);
        assert!(places(&vec![(0, 1); PLACES]).is_some());
        assert!(places(&vec![(0, 1); PLACES + 1]).is_none());
    }

    #[test]
    fn sets_contain_what_was_added() {
        let (mut small, mut large) = (Bits::default(), Bits::default());
        small.add(255);
        assert!(small.has(255) && !small.has(0) && large.within(&small) && !small.within(&large));
        large.add(255);
        large.add(64);
        assert!(small.within(&large));
        large.remove(255);
        assert!(!large.has(255) && large.has(64));
    }
}

//! Instants as horizontal positions: true time, or the order of events.

use crate::{
    history::Micros,
    report::terminal::{long_from, millis},
};

/// What a stretch without events is drawn as when it is far longer than everything else.
const BREAK: f64 = 34.0;

/// The least distance of two labels.
const APART: f64 = 62.0;

/// How instants become positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Distances show time; long empty stretches are drawn short and marked.
    Time,
    /// Every instant at which something happened has the same distance to the next.
    Events,
}

/// A time axis.
#[derive(Debug)]
pub(super) struct Axis {
    origin: Micros,
    points: Vec<(Micros, f64)>,
    order: Order,
    /// The middles of the stretches that are drawn short, and how long these are.
    pub(super) breaks: Vec<(f64, Micros)>,
}

impl Axis {
    /// An axis of `width` that shows all of these instants.
    pub(super) fn new(mut instants: Vec<Micros>, width: f64, order: Order) -> Self {
        instants.sort_unstable();
        instants.dedup();
        let origin = instants.first().copied().unwrap_or_default();
        let long = if order == Order::Time { long_from(&instants) } else { None };
        let is_long = |length: Micros| long.is_some_and(|long| length >= long);
        let lengths: Vec<Micros> = instants.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mut breaks_in_all = lengths.iter().filter(|length| is_long(**length)).count();
        if breaks_in_all as f64 * BREAK * 2.0 > width {
            breaks_in_all = 0;
        }
        let is_short = |length: Micros| breaks_in_all > 0 && is_long(length);
        let weight = |length: Micros| if order == Order::Events { 1.0 } else { length as f64 };
        let total: f64 = lengths.iter().filter(|length| !is_short(**length)).map(|length| weight(*length)).sum();
        let room = width - breaks_in_all as f64 * BREAK;
        let mut x = 0.0;
        let mut points = vec![(origin, 0.0)];
        let mut breaks = Vec::new();
        for (length, to) in lengths.iter().zip(instants.iter().skip(1)) {
            let step = if is_short(*length) {
                breaks.push((x + BREAK / 2.0, *length));
                BREAK
            } else {
                weight(*length) * room / total.max(1.0)
            };
            x += step;
            points.push((*to, x));
        }
        Self { origin, points, order, breaks }
    }

    /// The position of an instant; outside of the axis that of its nearer end.
    pub(super) fn x(&self, at: Micros) -> f64 {
        let next = self.points.partition_point(|(instant, _)| *instant < at);
        match (next.checked_sub(1).and_then(|index| self.points.get(index)), self.points.get(next)) {
            (Some((from, left)), Some((to, right))) => {
                left + (right - left) * ((at - from) as f64) / ((to - from) as f64).max(1.0)
            }
            (None, Some((_, x))) | (Some((_, x)), None) => *x,
            (None, None) => 0.0,
        }
    }

    /// Labels far enough apart to be read: time since the first instant. In true time they stand at round times, by
    /// event order and around breaks at instants at which something happened.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for (at, x) in self.round_times().unwrap_or_else(|| self.points.clone()) {
            if ticks.last().is_none_or(|(last, _)| x - last >= APART) {
                let since = at - self.origin;
                ticks.push((x, if since == 0 { "0".to_owned() } else { millis(since) }));
            }
        }
        ticks
    }

    fn round_times(&self) -> Option<Vec<(Micros, f64)>> {
        let (last, width) = *self.points.last()?;
        let all = last - self.origin;
        if self.order == Order::Events || !self.breaks.is_empty() || all == 0 {
            return None;
        }
        let least = all as f64 / width.max(1.0) * APART * 1.3;
        let decades = (0..20).filter_map(|power| 10u64.checked_pow(power));
        let step = decades
            .flat_map(|ten| [1, 2, 5].map(|factor| ten.saturating_mul(factor)))
            .find(|step| *step as f64 >= least)?;
        Some((0..=all / step).map(|number| self.origin + number * step).map(|at| (at, self.x(at))).collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn positions_keep_the_order_and_the_width(
            mut instants in proptest::collection::vec(any::<u64>(), 0..40),
            events in any::<bool>(),
        ) {
            let order = if events { Order::Events } else { Order::Time };
            let axis = Axis::new(instants.clone(), 600.0, order);
            instants.sort_unstable();
            let places: Vec<_> = instants.iter().map(|at| axis.x(*at)).collect();
            prop_assert!(places.windows(2).all(|pair| pair[0] <= pair[1] + 1e-6), "{places:?}");
            prop_assert!(places.iter().all(|x| (-1e-6..=600.001).contains(x)), "{places:?}");
            let ticks = axis.ticks();
            prop_assert!(ticks.windows(2).all(|pair| pair[1].0 - pair[0].0 >= APART - 1e-6));
        }
    }

    #[test]
    fn a_long_wait_is_drawn_short() {
        let axis = Axis::new(vec![0, 10_000, 30_010_000, 30_020_000], 600.0, Order::Time);
        assert_eq!(axis.breaks.len(), 1);
        assert!(axis.x(10_000) > 200.0 && axis.x(30_010_000) - axis.x(10_000) < 40.0);
        let events = Axis::new(vec![0, 10_000, 30_010_000, 30_020_000], 600.0, Order::Events);
        assert!((events.x(10_000) - 200.0).abs() < 1e-6 && events.breaks.is_empty());
    }
}

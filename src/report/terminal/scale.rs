//! Instants as columns. Long stretches in which nothing happens are drawn short and marked.

use crate::history::Micros;

/// A stretch without events is drawn short if it is at least this long ...
const LONG: Micros = 2_000_000;

/// ... and this many times longer than all shorter stretches together.
const TIMES: u128 = 10;

/// The columns of a stretch that is drawn short.
const BREAK: usize = 5;

/// The least distance of two labels on the ruler, in columns.
const APART: u128 = 7;

/// A time axis.
#[derive(Debug)]
pub(crate) struct Scale {
    origin: Micros,
    width: usize,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    from: Micros,
    to: Micros,
    left: usize,
    right: usize,
    broken: bool,
}

impl Scale {
    /// A scale of `width` columns that shows all of these instants.
    pub(crate) fn new(mut instants: Vec<Micros>, width: usize) -> Self {
        instants.sort_unstable();
        instants.dedup();
        let origin = instants.first().copied().unwrap_or_default();
        let last_column = width.saturating_sub(1);
        let long = long_from(&instants);
        let stretches: Vec<_> = instants.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let is_long = |(from, to): &(Micros, Micros)| long.is_some_and(|long| to - from >= long);
        let mut breaks = stretches.iter().filter(|stretch| is_long(stretch)).count();
        if breaks * BREAK * 2 > last_column {
            breaks = 0;
        }
        let room = (last_column - breaks * BREAK) as u128;
        let shown = |stretch: &(Micros, Micros)| breaks == 0 || !is_long(stretch);
        let total: u128 = stretches.iter().filter(|s| shown(s)).map(|(from, to)| u128::from(to - from)).sum();
        let mut parts: Vec<Part> = Vec::new();
        let (mut before, mut skipped) = (0u128, 0);
        for stretch in stretches {
            let left = parts.last().map_or(0, |part| part.right);
            let broken = !shown(&stretch);
            if broken {
                skipped += BREAK;
            } else {
                before += u128::from(stretch.1 - stretch.0);
            }
            let right = (before * room).checked_div(total).unwrap_or_default() as usize + skipped;
            match parts.last_mut() {
                Some(part) if !broken && !part.broken => (part.to, part.right) = (stretch.1, right),
                _ => parts.push(Part { from: stretch.0, to: stretch.1, left, right, broken }),
            }
        }
        Self { origin, width, parts }
    }

    /// The column of an instant, from 0.
    pub(crate) fn column(&self, at: Micros) -> usize {
        let Some(part) = self.parts.iter().find(|part| at <= part.to) else {
            return self.parts.last().map_or(0, |part| part.right);
        };
        let passed = u128::from(at.saturating_sub(part.from)) * (part.right - part.left) as u128;
        let columns = passed.checked_div(u128::from(part.to - part.from)).unwrap_or_default();
        part.left + usize::try_from(columns).unwrap_or_default()
    }

    /// Whether a column lies inside a stretch that is drawn short.
    pub(crate) fn is_broken(&self, column: usize) -> bool {
        self.parts.iter().any(|part| part.broken && part.left < column && column < part.right)
    }

    /// The labels, in milliseconds since the first instant, with `mark` (2 columns) at every break.
    pub(crate) fn ruler(&self, mark: [char; 2]) -> String {
        let mut ruler = vec![' '; self.width];
        let mut free = 0;
        if self.parts.is_empty() {
            place(&mut ruler, &mut free, 0, "0");
        }
        for part in &self.parts {
            if part.broken {
                place(&mut ruler, &mut free, part.left + 2, &mark.iter().collect::<String>());
                continue;
            }
            let columns = (part.right - part.left).max(1) as u128;
            let (from, to) = (part.from - self.origin, part.to - self.origin);
            let step = nice(u128::from(to - from) * APART / columns);
            let mut tick = u128::from(from).div_ceil(step) * step;
            if from > 0 && tick > u128::from(from) + step / 2 {
                place(&mut ruler, &mut free, part.left, &label(u128::from(from)));
            }
            while tick <= u128::from(to) {
                let at = self.origin.saturating_add(u64::try_from(tick).unwrap_or(u64::MAX));
                place(&mut ruler, &mut free, self.column(at), &label(tick));
                tick += step;
            }
        }
        ruler.into_iter().collect()
    }
}

/// From which length on stretches are drawn short.
pub(crate) fn long_from(instants: &[Micros]) -> Option<Micros> {
    let mut lengths: Vec<_> = instants.windows(2).map(|pair| pair[1] - pair[0]).collect();
    lengths.sort_unstable();
    let mut shorter = 0u128;
    for length in lengths {
        if shorter > 0 && length >= LONG && u128::from(length) > shorter * TIMES {
            return Some(length);
        }
        shorter += u128::from(length);
    }
    None
}

/// The smallest of 1, 2, 5, 10, 20, 50, ... that is not smaller than `least`.
pub(crate) fn nice(least: u128) -> u128 {
    let mut decade = 1;
    loop {
        for factor in [1, 2, 5] {
            if decade * factor >= least {
                return decade * factor;
            }
        }
        decade *= 10;
    }
}

fn label(micros: u128) -> String {
    let whole = micros / 1_000;
    match micros % 1_000 {
        part if part > 0 && whole < 100 => format!("{whole}.{part:03}").trim_end_matches('0').to_owned(),
        _ => whole.to_string(),
    }
}

fn place(ruler: &mut [char], free: &mut usize, column: usize, text: &str) {
    let end = column + text.chars().count();
    if column < *free || end > ruler.len() {
        return;
    }
    for (slot, c) in ruler[column..end].iter_mut().zip(text.chars()) {
        *slot = c;
    }
    *free = end + 1;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_times_are_drawn_to_scale() {
        let scale = Scale::new(vec![1_000, 1_000, 101_000, 401_000], 41);
        assert_eq!([1_000, 101_000, 401_000].map(|at| scale.column(at)), [0, 10, 40]);
        assert_eq!(scale.ruler(['/', '/']).trim_end(), "0         100       200       300");
    }

    #[test]
    fn a_long_silence_is_drawn_short() {
        let scale = Scale::new(vec![0, 5_000, 12_000, 30_012_000, 30_020_000], 41);
        assert!(scale.column(12_000) > 15 && scale.column(30_012_000) == scale.column(12_000) + BREAK);
        assert_eq!(scale.column(30_020_000), 40);
        assert!(scale.is_broken(scale.column(12_000) + 1) && !scale.is_broken(0));
        assert_eq!(scale.ruler(['/', '/']).trim_end(), "0       5        10    // 30012");
    }

    #[test]
    fn one_instant_is_one_column() {
        let scale = Scale::new(vec![7, 7], 30);
        assert_eq!((scale.column(7), scale.column(900)), (0, 0));
        assert_eq!(scale.ruler(['/', '/']).trim_end(), "0");
        assert_eq!(Scale::new(vec![], 30).column(5), 0);
    }

    proptest! {
        #[test]
        fn later_is_never_further_left(
            instants in proptest::collection::vec(prop_oneof![any::<u64>(), 0u64..5_000, 0u64..90_000_000], 0..40),
            width in 1usize..150,
        ) {
            let scale = Scale::new(instants.clone(), width);
            let mut sorted = instants;
            sorted.sort_unstable();
            let columns: Vec<_> = sorted.iter().map(|at| scale.column(*at)).collect();
            prop_assert!(columns.is_sorted());
            prop_assert!(columns.iter().all(|column| *column < width));
            prop_assert_eq!(scale.ruler(['/', '/']).chars().count(), width);
        }
    }
}

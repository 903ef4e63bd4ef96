//! A small generator for jitter, toxicity and slice points. Not for secrets.

use std::hash::{BuildHasher, Hasher, RandomState};

/// SplitMix64: one state word, good enough to spread delays.
#[derive(Debug)]
pub(super) struct Rng(u64);

impl Rng {
    /// A seed from the process-wide random keys of the standard library.
    pub(super) fn entropy() -> u64 {
        RandomState::new().build_hasher().finish()
    }

    /// Another generator, which depends on this one's state and on `salt` alone.
    pub(super) fn fork(&self, salt: u64) -> Self {
        Self(Self(self.0 ^ salt.wrapping_mul(0xd6e8_feb8_6659_fd93)).bits())
    }

    /// A generator that always gives the same numbers for the same seed.
    pub(super) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `[-spread, spread)`; zero when `spread` is not positive.
    pub(super) fn around(&mut self, spread: i64) -> i64 {
        if spread <= 0 {
            return 0;
        }
        let width = (spread as u64).saturating_mul(2);
        (self.bits() % width) as i64 - spread
    }

    /// A number in `[0, 1)`, to be compared with a toxicity.
    pub(super) fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u64 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_range_and_vary() {
        let mut rng = Rng::seeded(1);
        let drawn: Vec<i64> = (0..1000).map(|_| rng.around(10)).collect();
        assert!(drawn.iter().all(|n| (-10..10).contains(n)));
        assert!(drawn.contains(&-10) && drawn.contains(&9));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&rng.unit())));
        assert_eq!(rng.around(0), 0);
        assert_eq!(rng.around(-5), 0);
    }
}

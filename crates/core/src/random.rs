//! Random numbers from a seed, the same on every machine, in the same order on any number of threads.

/// SplitMix64 (Steele, Lea and Flood 2014): a counter, and a mixing of its bits.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// From 0 up to, but not, 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Of the standard Gumbel distribution.
    pub fn gumbel(&mut self) -> f64 {
        let unit = (self.bits() >> 11) as f64 + 0.5;
        -libm::log(-libm::log(unit / (1u64 << 53) as f64))
    }
}

/// Decides what is passed over: each time it is asked, with the same probability and independently of all other times.
pub struct Dropout {
    probability: f64,
    random: Random,
}

impl Dropout {
    pub fn new(probability: f64, seed: u64) -> Self {
        Self { probability, random: Random::new(seed) }
    }

    /// Takes the next random number.
    #[inline]
    pub fn drops(&mut self) -> bool {
        self.random.unit() < self.probability
    }
}

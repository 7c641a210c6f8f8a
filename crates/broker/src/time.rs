//! Time as the core knows it: a value handed in, never read from a clock.
//!
//! The broker lives on one time axis. The shell anchors it to the wall clock when it starts and lets
//! it run with the monotonic clock from then on, so that a step of the wall clock neither expires a
//! message early nor makes one immortal. `Time` is a point on that axis in microseconds since the
//! Unix epoch; the wall clock itself is only used where a client sees it (`x-death.time`).

/// A point on the broker's time axis, in microseconds since the Unix epoch as anchored at start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Time(u64);

impl Time {
    /// Later than every deadline.
    pub const MAX: Self = Self(u64::MAX);

    /// The point `micros` microseconds after the epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The point `millis` milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The point `millis` milliseconds later; never past [`Time::MAX`].
    #[must_use]
    pub const fn plus_ms(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis.saturating_mul(1000)))
    }

    /// The point `millis` milliseconds earlier; never before the epoch.
    #[must_use]
    pub const fn minus_ms(self, millis: u64) -> Self {
        Self(self.0.saturating_sub(millis.saturating_mul(1000)))
    }

    /// The last moment before this one.
    #[must_use]
    pub const fn just_before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// Microseconds that have passed since `earlier`, 0 if it lies ahead.
    pub const fn micros_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The moment a batch of commands is applied: one reading of both clocks for the whole batch.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Now {
    /// The broker's own axis; deadlines are compared with this.
    pub time: Time,
    /// Wall clock, milliseconds since the Unix epoch; only shown, never compared.
    pub wall_ms: u64,
}

impl Now {
    /// A moment at which both clocks agree, `millis` milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self { time: Time::from_millis(millis), wall_ms: millis }
    }
}

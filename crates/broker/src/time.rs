//! Time in the core: a value passed as an argument, never read from a clock.
//!
//! The broker has one time axis. The shell anchors it to the wall clock at start and then advances it with
//! the monotonic clock, so that a step of the wall clock neither expires a message early nor makes it
//! immortal. `Time` is a point on that axis in microseconds since the Unix epoch; the wall clock itself is
//! used only in values shown to clients (`x-death.time`) and where a client names a moment of it
//! (`x-opt-delivery-time`), which becomes a delay on the axis at once.
//!
//! A replicated vhost has an axis of its own: a new leader continues the axis of the one before, whatever its wall
//! clock says. Its log stores times of the axis ([`Now::on_axis`]).

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

    /// The point `micros` microseconds later; never past [`Time::MAX`].
    #[must_use]
    pub const fn plus_micros(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// The point `millis` milliseconds earlier; never before the epoch.
    #[must_use]
    pub const fn minus_ms(self, millis: u64) -> Self {
        Self(self.0.saturating_sub(millis.saturating_mul(1000)))
    }

    /// The last microsecond before this point.
    #[must_use]
    pub const fn just_before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// Microseconds since `earlier`; 0 if `earlier` is in the future.
    pub const fn micros_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The moment at which a batch of commands is applied: one reading of both clocks for the whole batch.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Now {
    /// The time on the broker's axis; deadlines are compared with this time.
    pub time: Time,
    /// Wall clock, in microseconds since the Unix epoch; only shown, and the base of moments that clients name.
    ///
    /// While both clocks run alike, all moments have the same distance between the two: one moment of the wall clock that
    /// is named twice is one point on the axis.
    pub wall_us: u64,
}

impl Now {
    /// A moment at which both clocks agree, `millis` milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self { time: Time::from_millis(millis), wall_us: millis.saturating_mul(1000) }
    }

    /// The moment as the log of a replicated vhost stores it: in milliseconds of the axis, which a new leader
    /// continues, instead of the wall clock, which differs between nodes. The log reads a millisecond back as its
    /// end, so that a stored time is never earlier than the real one and less than a millisecond later.
    #[must_use]
    pub const fn on_axis(self) -> Self {
        Self { time: self.time, wall_us: self.time.as_micros() }
    }

    /// Wall clock, in milliseconds since the Unix epoch.
    pub const fn wall_ms(self) -> u64 {
        self.wall_us / 1000
    }

    /// Wall clock at the end of a delay that begins now, in milliseconds since the Unix epoch; as by [`Self::wall_ms_at`], a
    /// time in the future is rounded up, so that the delay is never shorter.
    pub const fn wall_ms_after(self, delay_ms: u64) -> u64 {
        let now_ms = if delay_ms > 0 { self.wall_us.div_ceil(1000) } else { self.wall_ms() };
        now_ms.saturating_add(delay_ms)
    }

    /// The time at which the wall clock shows these milliseconds since the Unix epoch; not before the axis begins.
    pub const fn time_at(self, wall_ms: u64) -> Time {
        let wall_us = wall_ms.saturating_mul(1000);
        let (ahead_us, ago_us) =
            (wall_us.saturating_sub(self.wall_us), self.wall_us.saturating_sub(wall_us));
        Time(self.time.0.saturating_sub(ago_us).saturating_add(ahead_us))
    }

    /// The wall clock at a time, in milliseconds since the Unix epoch; a time in the future is rounded up, so that a
    /// deadline is never shown too early.
    pub const fn wall_ms_at(self, time: Time) -> u64 {
        let (ago_us, ahead_us) = (self.time.micros_since(time), time.micros_since(self.time));
        let wall_us = self.wall_us.saturating_sub(ago_us).saturating_add(ahead_us);
        if ahead_us > 0 { wall_us.div_ceil(1000) } else { wall_us / 1000 }
    }
}

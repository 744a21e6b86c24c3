//! `Health`: failures in a row, the end of a cool-down, the average latency.

use std::time::Duration;

use tokio::time::Instant;

/// The share of the newest measurement in the average latency.
const NEWEST: f64 = 0.3;

/// The time after which a latency is measured again. The server may have been slow for a moment.
const LATENCY_TTL: Duration = Duration::from_secs(60);

/// How a model has answered lately.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Health {
    /// The failures since the last answer.
    failures: u32,
    cooling: Cooling,
    latency: Option<Latency>,
}

/// Whether a model is used last.
#[derive(Debug, Clone, Copy, Default)]
enum Cooling {
    #[default]
    No,
    Until(Instant),
    /// Until it answers.
    WithoutEnd,
}

/// An average time to the first chunk.
#[derive(Debug, Clone, Copy)]
struct Latency {
    seconds: f64,
    measured: Instant,
}

impl Cooling {
    fn lasting(time: Duration) -> Self {
        Instant::now().checked_add(time).map_or(Self::WithoutEnd, Self::Until)
    }
}

impl Health {
    /// Notes a failure. The server may have asked for a delay.
    pub(super) fn note_failure(&mut self, most: u32, cool_down: Duration, delay: Option<Duration>) {
        self.failures = self.failures.saturating_add(1);
        match delay {
            Some(delay) => self.cooling = Cooling::lasting(delay.max(cool_down)),
            None if self.failures >= most => self.cooling = Cooling::lasting(cool_down),
            None => {}
        }
    }

    pub(super) fn note_answer(&mut self) {
        self.failures = 0;
        self.cooling = Cooling::No;
    }

    pub(super) fn note_first_chunk(&mut self, after: Duration) {
        let newest = after.as_secs_f64();
        let known = self.current_latency(Instant::now());
        let seconds = known.map_or(newest, |known| known.mul_add(1.0 - NEWEST, newest * NEWEST));
        self.latency = Some(Latency { seconds, measured: Instant::now() });
    }

    pub(super) fn is_cooling(&self, now: Instant) -> bool {
        match self.cooling {
            Cooling::No => false,
            Cooling::Until(end) => now < end,
            Cooling::WithoutEnd => true,
        }
    }

    /// Begins another cool-down, if one has ended: this request tries the model, and others go elsewhere.
    pub(super) fn note_trial(&mut self, cool_down: Duration) {
        if let Cooling::Until(_) = self.cooling {
            self.cooling = Cooling::lasting(cool_down);
        }
    }

    /// Returns the average latency in seconds. A model without a recent one is the fastest, so that it is measured.
    pub(super) fn latency(&self, now: Instant) -> f64 {
        self.current_latency(now).unwrap_or_default()
    }

    fn current_latency(&self, now: Instant) -> Option<f64> {
        let is_current = |latency: &Latency| now.saturating_duration_since(latency.measured) < LATENCY_TTL;
        self.latency.filter(is_current).map(|latency| latency.seconds)
    }
}

//! `Latencies`: collects times and returns their percentiles.

/// Times in nanoseconds, of which a few are asked for at the end.
pub(crate) struct Latencies(Vec<u64>);

impl Latencies {
    /// Room for `count` times, written once so that it does not count as growth later.
    pub(crate) fn with_room(count: usize) -> Self {
        let mut times = vec![1; count];
        times.clear();
        Self(times)
    }

    pub(crate) fn push(&mut self, ns: u64) {
        self.0.push(ns);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The time that this share of all is below; 0 if there is none.
    pub(crate) fn percentile(&mut self, percent: usize) -> u64 {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        self.0.get(last * percent / 100).copied().unwrap_or_default()
    }
}

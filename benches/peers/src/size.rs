//! `Size`: the amount of measurement, for published results or for a short trial.

/// The amount of measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Chunks of a stream whose CPU time is measured.
    pub(crate) chunks: usize,
    /// Interleaved rounds.
    pub(crate) rounds: usize,
    /// Rounds of calls in a turn.
    pub(crate) loops: &'static [usize],
    /// Streams at once.
    pub(crate) streams: usize,
    /// Chunks of each of them, 20 ms apart.
    pub(crate) paced_chunks: usize,
    /// Chunks of the streams whose reader stops.
    pub(crate) stalled: [usize; 2],
    /// Fresh processes of which the start is measured.
    pub(crate) starts: usize,
}

impl Size {
    /// The amount for published results.
    pub(crate) const FULL: Self = Self {
        chunks: 20_000,
        rounds: 21,
        loops: &[10, 50, 200],
        streams: 1_000,
        paced_chunks: 150,
        stalled: [20_000, 200_000],
        starts: 15,
    };

    /// A small try.
    pub(crate) const QUICK: Self = Self {
        chunks: 5_000,
        rounds: 3,
        loops: &[10, 50],
        streams: 200,
        paced_chunks: 50,
        stalled: [20_000, 200_000],
        starts: 5,
    };
}

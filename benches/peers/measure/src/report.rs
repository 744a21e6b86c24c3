//! `Report`: the result that a client prints for the driver, as one line of JSON.

use serde::{Deserialize, Serialize};

/// The result that a client prints for the driver, as one line of JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Report {
    /// Of [`Mode::Cold`](crate::Mode::Cold) and [`Mode::Warm`](crate::Mode::Warm).
    Streamed(Streamed),
    /// Of [`Mode::Paced`](crate::Mode::Paced).
    Paced(Paced),
    /// Of [`Mode::Stalled`](crate::Mode::Stalled).
    Stalled(Stalled),
}

/// The cost of one turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Streamed {
    /// Requests that the turn took; the same for all clients.
    pub requests: u64,
    /// Bytes of text that came out; the same for all clients.
    pub text_bytes: u64,
    /// CPU time of the turn, user and kernel.
    pub cpu_ns: u64,
    /// Time that it took.
    pub wall_ns: u64,
    /// The time of the first text, on the clock of [`monotonic_ns`](crate::monotonic_ns).
    pub first_text_at: u64,
    /// The most memory of the whole process.
    pub peak_kib: u64,
}

/// The cost of many slow streams at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Paced {
    /// Chunks that came, of all streams.
    pub chunks: u64,
    /// CPU time of them, user and kernel.
    pub cpu_ns: u64,
    /// Time that they took.
    pub wall_ns: u64,
    /// Memory before the streams were opened.
    pub before_kib: u64,
    /// Memory when the last of them had got half of its chunks.
    pub midway_kib: u64,
    /// From the server's write to the reader, half of the chunks.
    pub added_p50_ns: u64,
    /// The same, 99 of 100 chunks.
    pub added_p99_ns: u64,
    /// From the request to the first chunk, half of the streams.
    pub first_p50_ns: u64,
}

/// The memory of a client whose reader has stopped.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stalled {
    /// Memory before the stream was opened.
    pub before_kib: u64,
    /// Memory after the pause.
    pub after_kib: u64,
}

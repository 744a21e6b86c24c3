//! Writes a stream at a fixed pace, whose chunks have the time of sending as their text.

use std::io;
use std::time::Duration;

use peer_measure::{Scenario, monotonic_ns};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use super::answer::{END, HEAD, write_chunk};
use super::events;

/// Writes the first chunk at once, the others one by one. Streams that begin together continue at different
/// moments, spread over the interval between two chunks.
pub(super) async fn write(stream: &mut TcpStream, scenario: Scenario, serial: u64) -> io::Result<()> {
    let pause = Duration::from_millis(scenario.by as u64);
    let shifted = Instant::now() + pause.mul_f64((serial as f64 * 0.618_033_99).fract());
    let mut bytes = HEAD.to_vec();
    for index in 0..scenario.count {
        if index > 0 {
            sleep_until(shifted + pause * u32::try_from(index).unwrap_or(u32::MAX)).await;
        }
        write_chunk(&mut bytes, &events::of_text(&format!("{:020}", monotonic_ns())));
        stream.write_all(&bytes).await?;
        bytes.clear();
    }
    write_chunk(&mut bytes, &events::end("stop", scenario.count));
    bytes.extend_from_slice(END);
    stream.write_all(&bytes).await
}

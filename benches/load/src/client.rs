//! The client: all streams on one thread.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::Load;
use crate::servers::now_ns;

/// The time between the starts of two streams.
const BETWEEN_STARTS: Duration = Duration::from_millis(1);

/// The longest silence of a stream. A server that falls behind is not silent.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

/// The data that the client received.
#[derive(Debug, Default)]
pub(crate) struct ReadStreams {
    /// The time from sending to reading each chunk, in nanoseconds.
    pub(crate) latencies: Vec<u64>,
    /// The reads of the client. A server that falls behind sends several chunks at once, which costs it less.
    pub(crate) reads: usize,
    /// The streams that did not end as the protocol demands, or have fewer or other chunks than were asked for.
    pub(crate) lost_streams: usize,
    /// The bytes of the events of a stream, without the framing of HTTP; the same for all streams.
    pub(crate) stream_bytes: BTreeSet<usize>,
}

/// Reads all streams to their ends. A new one starts each millisecond.
pub(crate) fn read(address: SocketAddr, load: Load) -> ReadStreams {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut clock = tokio::time::interval(BETWEEN_STARTS);
        let mut tasks = Vec::with_capacity(load.streams);
        for number in 0..load.streams {
            clock.tick().await;
            tasks.push(tokio::spawn(read_one(address, number, load.chunks)));
        }
        let mut all = ReadStreams::default();
        for task in tasks {
            let stream = task.await.unwrap();
            all.lost_streams += usize::from(!stream.is_whole(load.chunks));
            all.stream_bytes.insert(stream.bytes);
            all.reads += stream.reads;
            all.latencies.extend(stream.latencies);
        }
        all
    })
}

/// The data of one stream.
#[derive(Debug, Default)]
struct OneStream {
    latencies: Vec<u64>,
    reads: usize,
    last_sent: u64,
    bytes: usize,
    order: Order,
    end: End,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Kept,
    Broken,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    Missing,
    Read,
}

async fn read_one(address: SocketAddr, number: usize, chunks: usize) -> OneStream {
    let mut stream = OneStream { latencies: Vec::with_capacity(chunks), ..OneStream::default() };
    if let Err(error) = read_events(address, number, chunks, &mut stream).await {
        println!("stream {number} failed after {} chunks: {error}", stream.latencies.len());
    }
    stream
}

async fn read_events(
    address: SocketAddr,
    number: usize,
    chunks: usize,
    stream: &mut OneStream,
) -> io::Result<()> {
    let mut connection = TcpStream::connect(address).await?;
    connection.write_all(request(number, chunks).as_bytes()).await?;
    let mut unread = Vec::with_capacity(4_096);
    while stream.end == End::Missing {
        if timeout(LONGEST_SILENCE, connection.read_buf(&mut unread)).await?? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let now = now_ns();
        stream.reads += 1;
        let lines = unread.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let text = std::str::from_utf8(&unread[..lines]).map_err(io::Error::other)?;
        text.lines().for_each(|line| stream.line(line, now));
        unread.drain(..lines);
    }
    Ok(())
}

fn request(number: usize, chunks: usize) -> String {
    let body = format!(r#"{{"messages":[{{"role":"user","content":"{chunks}"}}],"stream":true}}"#);
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         idempotency-key: stream-{number:09}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

impl OneStream {
    fn line(&mut self, line: &str, now: u64) {
        let Some(data) = line.strip_prefix("data: ") else { return };
        self.bytes += data.len();
        if data == "[DONE]" {
            self.end = End::Read;
        }
        let content = data.split_once("\"content\":\"").and_then(|(_, rest)| rest.split_once('"'));
        let Some(sent) = content.and_then(|(time, _)| time.parse().ok()) else { return };
        if sent <= self.last_sent {
            self.order = Order::Broken;
        }
        self.last_sent = sent;
        self.latencies.push(now.saturating_sub(sent));
    }

    fn is_whole(&self, chunks: usize) -> bool {
        self.end == End::Read && self.order == Order::Kept && self.latencies.len() == chunks
    }
}

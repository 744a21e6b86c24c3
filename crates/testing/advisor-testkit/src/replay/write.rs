//! Plays a reply onto a connection.

use super::{Framing, Reply, Step};
use bytes::Bytes;
use std::future::pending;
use std::io;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The fate of the connection after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It takes the next request.
    KeepAlive,
    /// It is closed.
    Close,
    /// It is reset.
    Reset,
}

/// Plays the steps of `reply`. Never returns from [`Step::Stall`]: the caller drops the future when the client
/// disconnects.
pub(super) async fn write_reply(reply: &Reply, out: &mut (impl AsyncWrite + Unpin)) -> io::Result<Ending> {
    if let Some(gate) = &reply.before_head {
        gate.pass().await;
    }
    out.write_all(&reply.head()).await?;
    out.flush().await?;
    for step in &reply.steps {
        match step {
            Step::Write(bytes) => write_piece(reply.framing, bytes, out).await?,
            Step::Wait(gate) => gate.pass().await,
            Step::Stall => pending().await,
            Step::Cut => return Ok(Ending::Close),
            Step::Reset => return Ok(Ending::Reset),
        }
    }
    match reply.framing {
        Framing::Chunked => {
            out.write_all(b"0\r\n\r\n").await?;
            out.flush().await?;
            Ok(Ending::KeepAlive)
        }
        Framing::ContentLength => Ok(Ending::KeepAlive),
        Framing::UntilClose | Framing::Raw => Ok(Ending::Close),
    }
}

async fn write_piece(framing: Framing, bytes: &Bytes, out: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    if bytes.is_empty() {
        // An empty HTTP chunk would be the last one.
        return Ok(());
    }
    if framing == Framing::Chunked {
        // One write, so that the chunk is not split into three packets.
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        out.write_all(&chunk).await?;
    } else {
        out.write_all(bytes).await?;
    }
    out.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_empty_write_does_not_end_the_body() {
        let steps = vec![Step::Write(Bytes::new()), Step::Write(Bytes::from_static(b"a"))];
        let mut out = Vec::new();
        let ending = write_reply(&Reply::sse("").with_steps(steps), &mut out).await.unwrap();
        assert!(out.ends_with(b"\r\n\r\n1\r\na\r\n0\r\n\r\n"));
        assert_eq!(ending, Ending::KeepAlive);
    }
}

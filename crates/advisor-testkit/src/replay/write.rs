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
pub(super) async fn write_reply<W>(reply: &Reply, out: &mut W) -> io::Result<Ending>
where
    W: AsyncWrite + Unpin,
{
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

async fn write_piece<W>(framing: Framing, bytes: &Bytes, out: &mut W) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
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
    use crate::Gate;
    use futures::FutureExt;
    use std::time::Duration;

    async fn written(reply: &Reply) -> (String, Ending) {
        let mut out = Vec::new();
        let ending = write_reply(reply, &mut out).await.unwrap();
        let text = String::from_utf8(out).unwrap();
        let body = text.split_once("\r\n\r\n").unwrap().1;
        (body.to_owned(), ending)
    }

    #[tokio::test]
    async fn each_piece_is_one_http_chunk() {
        let reply = Reply::sse("abcdefghijklmnopqrstuvwxyz").split_at(&[1, 1, 18]);
        let (body, ending) = written(&reply).await;
        assert_eq!(body, "1\r\na\r\n11\r\nbcdefghijklmnopqr\r\n8\r\nstuvwxyz\r\n0\r\n\r\n");
        assert_eq!(ending, Ending::KeepAlive);
    }

    #[tokio::test]
    async fn an_empty_write_does_not_end_the_body() {
        let steps = vec![Step::Write(Bytes::new()), Step::Write(Bytes::from_static(b"a"))];
        let (body, _) = written(&Reply::sse("").with_steps(steps)).await;
        assert_eq!(body, "1\r\na\r\n0\r\n\r\n");
    }

    #[tokio::test]
    async fn endings_leave_the_body_open() {
        let reply = Reply::sse("abc");
        assert_eq!(written(&reply.clone().cut_after(2)).await, ("2\r\nab\r\n".to_owned(), Ending::Close));
        assert_eq!(written(&reply.clone().reset_after(3)).await, ("3\r\nabc\r\n".to_owned(), Ending::Reset));
        let plain = reply.with_framing(Framing::UntilClose);
        assert_eq!(written(&plain).await, ("abc".to_owned(), Ending::Close));
        let sized = plain.with_framing(Framing::ContentLength);
        assert_eq!(written(&sized).await, ("abc".to_owned(), Ending::KeepAlive));
    }

    #[tokio::test]
    async fn a_gate_holds_back_what_follows() {
        let (before, middle) = (Gate::new(), Gate::new());
        let reply = Reply::sse("abc").gate_head(before.clone()).gate_after(1, middle.clone());
        let (mut out, mut client) = tokio::io::duplex(1024);
        let mut playing = Box::pin(write_reply(&reply, &mut out));
        let mut seen = Vec::new();

        assert!(playing.as_mut().now_or_never().is_none());
        assert!(before.is_reached() && !middle.is_reached());
        assert!(read_ready(&mut client, &mut seen).is_empty());

        before.release();
        assert!(playing.as_mut().now_or_never().is_none());
        assert!(middle.is_reached());
        assert!(read_ready(&mut client, &mut seen).ends_with(b"\r\n\r\n1\r\na\r\n"));

        middle.release();
        assert!(playing.as_mut().now_or_never().is_some());
        assert!(read_ready(&mut client, &mut seen).ends_with(b"2\r\nbc\r\n0\r\n\r\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stall_lasts_for_ever() {
        let reply = Reply::sse("abc").stall_after(1);
        let mut out = Vec::new();
        let day = Duration::from_secs(86_400);
        let stalled = tokio::time::timeout(day, write_reply(&reply, &mut out)).await;
        assert!(stalled.is_err());
        assert!(out.ends_with(b"1\r\na\r\n"));
    }

    /// Appends the bytes that are ready to `seen`, and returns `seen`.
    fn read_ready<'a>(client: &mut tokio::io::DuplexStream, seen: &'a mut Vec<u8>) -> &'a [u8] {
        use tokio::io::AsyncReadExt;
        while let Some(read) = client.read_buf(seen).now_or_never() {
            read.unwrap();
        }
        seen
    }
}

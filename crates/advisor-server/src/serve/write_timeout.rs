//! `WriteTimeout`: a connection whose client has to take bytes within a time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection whose peer has to take some of the bytes within a time. A write without progress fails.
///
/// Each byte that the peer takes resets the timeout, so a slow peer keeps its connection. Only writes wait on a
/// socket, which has no flush.
pub(crate) struct WriteTimeout<S> {
    stream: S,
    timeout: Duration,
    /// The end of the time, while a write waits.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, timeout, deadline: None }
    }

    /// Returns the progress of a write, or fails when it has made none within the time.
    fn limited(
        &mut self,
        progress: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if progress.is_ready() {
            self.deadline = None;
            return progress;
        }
        let timeout = self.timeout;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes no bytes")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limited(progress, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.limited(progress, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn write_without_progress_fails() {
        let (ours, _theirs) = duplex(8);
        let mut writer = WriteTimeout::new(ours, TIMEOUT);
        let since = Instant::now();
        let error = writer.write_all(&[0; 9]).await.unwrap_err();
        assert_eq!((error.kind(), since.elapsed()), (io::ErrorKind::TimedOut, TIMEOUT));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_reader_with_progress_gets_everything() {
        let (ours, mut theirs) = duplex(8);
        let mut writer = WriteTimeout::new(ours, TIMEOUT);
        let writing = async {
            writer.write_all(&[7; 108]).await.unwrap();
            drop(writer);
        };
        let reading = async {
            let mut read = Vec::new();
            let mut byte = [0; 1];
            loop {
                sleep(TIMEOUT - Duration::from_secs(1)).await;
                match theirs.read(&mut byte).await.unwrap() {
                    0 => return read,
                    _ => read.push(byte[0]),
                }
            }
        };
        let since = Instant::now();
        let ((), read) = tokio::join!(writing, reading);
        assert_eq!(read, [7; 108]);
        assert!(since.elapsed() > 80 * TIMEOUT, "the whole took longer than one time");
    }

    /// The time in which nothing has to be written does not count.
    #[tokio::test(start_paused = true)]
    async fn idle_connection_has_no_deadline() {
        let (ours, mut theirs) = duplex(8);
        let mut writer = WriteTimeout::new(ours, TIMEOUT);
        for _ in 0..3 {
            writer.write_all(&[0; 8]).await.unwrap();
            sleep(3 * TIMEOUT).await;
            theirs.read_exact(&mut [0; 8]).await.unwrap();
        }
    }
}

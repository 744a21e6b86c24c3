//! One connection: requests and replies in alternation.

use crate::replay::request::read_request;
use crate::replay::server::Ledger;
use crate::replay::write::{Ending, write_reply};
use crate::replay::{Framing, Reply};
use bytes::BytesMut;
use std::future::pending;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;

/// The most bytes that are read ahead while a client is being answered.
const LARGEST_AHEAD: usize = 64 << 10;

/// Serves one connection to its end.
pub(super) async fn serve(stream: TcpStream, connection: usize, ledger: Arc<Ledger>) {
    let _open = Open::count(&ledger);
    // Declared after `_open`, so that the socket closes before the connection is counted as closed.
    let mut stream = stream;
    // Only for speed: otherwise small pieces wait for each other.
    let _ = stream.set_nodelay(true);
    match take_turns(&mut stream, connection, &ledger).await {
        // With a linger time of zero, closing resets the connection.
        Ending::Reset => drop(stream.set_zero_linger()),
        Ending::Close | Ending::KeepAlive => drop(stream.shutdown().await),
    }
}

/// Answers requests until the connection must end.
async fn take_turns(stream: &mut TcpStream, connection: usize, ledger: &Ledger) -> Ending {
    // Borrowed halves: an owned half shuts down its direction when dropped, and a reset must not.
    let (mut input, mut output) = stream.split();
    let mut buffer = BytesMut::new();
    loop {
        let (reply, close) = match read_request(&mut input, &mut buffer).await {
            Ok(incoming) => {
                let mut request = incoming.request;
                request.connection = connection;
                (ledger.reply_to(request), incoming.close)
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => (bad_request(&error), true),
            Err(_) => return Ending::Close,
        };
        let ending = tokio::select! {
            biased;
            () = client_gone(&mut input, &mut buffer) => None,
            ending = write_reply(&reply, &mut output) => ending.ok(),
        };
        let Some(ending) = ending else {
            ledger.count(|counts| counts.disconnects += 1);
            return Ending::Close;
        };
        ledger.count(|counts| counts.replies += 1);
        if close || ending != Ending::KeepAlive {
            return match ending {
                Ending::Reset => Ending::Reset,
                Ending::Close | Ending::KeepAlive => Ending::Close,
            };
        }
    }
}

/// Returns when the client closes or resets the connection. Keeps the bytes that arrive meanwhile.
async fn client_gone(input: &mut ReadHalf<'_>, buffer: &mut BytesMut) {
    loop {
        if buffer.len() > LARGEST_AHEAD {
            pending::<()>().await;
        }
        match input.read_buf(buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

fn bad_request(why: &io::Error) -> Reply {
    Reply::html(400, format!("bad request: {why}\n"))
        .with_header("content-type", "text/plain")
        .with_framing(Framing::UntilClose)
}

/// Counts a connection as open while it lives, even if its task is aborted.
struct Open<'a> {
    ledger: &'a Ledger,
}

impl<'a> Open<'a> {
    fn count(ledger: &'a Ledger) -> Self {
        ledger.count(|counts| {
            counts.connections += 1;
            counts.open += 1;
        });
        Self { ledger }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.ledger.count(|counts| counts.open -= 1);
    }
}

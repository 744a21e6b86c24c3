//! One turn of the chat.

use std::io::{self, Write};
use std::pin::pin;

use advisor_chain::chain::OnDrop;
use advisor_chain::{Chunk, Error, ErrorKind, TurnStream};
use futures::{FutureExt, StreamExt};

use crate::failure::Failure;
use crate::screen::Screen;

/// A form in which the chat shows a turn.
pub(super) trait View {
    /// Shows a chunk.
    fn chunk(&mut self, chunk: &Chunk) -> io::Result<()>;

    /// Takes the error that ended the turn. Returns the failure, with the error if it is not shown yet.
    fn failed(&mut self, error: Error) -> io::Result<Failure>;
}

impl<A: Write, N: Write> View for Screen<A, N> {
    fn chunk(&mut self, chunk: &Chunk) -> io::Result<()> {
        self.show(chunk)
    }

    fn failed(&mut self, error: Error) -> io::Result<Failure> {
        self.end_lines()?;
        if error.kind() != ErrorKind::Cancelled {
            return Ok(Failure::Chain(error));
        }
        self.note("[cancelled]")?;
        Ok(Failure::Interrupted)
    }
}

/// Shows the answer as it arrives. An interrupt cancels it; the part that was shown stays in the conversation.
pub(super) async fn show(
    mut turn: TurnStream,
    interrupt: impl Future<Output = io::Result<()>>,
    view: &mut impl View,
) -> Result<(), Failure> {
    let handle = turn.handle();
    // One future for the whole answer, polled before each chunk: a signal is noticed even if chunks are always
    // ready.
    let mut interrupt = pin!(interrupt.fuse());
    let mut interrupted = false;
    loop {
        tokio::select! {
            biased;
            Ok(()) = &mut interrupt => {
                interrupted = true;
                handle.cancel(OnDrop::KeepPartial);
            }
            item = turn.next() => match item {
                Some(Ok(chunk)) => view.chunk(&chunk)?,
                Some(Err(error)) => return Err(view.failed(error)?),
                // The answer was complete when the interrupt arrived, which ends the program all the same.
                None if interrupted => return Err(Failure::Interrupted),
                None => return Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::Poll;

    use advisor_chain::ChatClient;
    use advisor_testkit::{Answer, ScriptedModel};
    use futures::future::poll_fn;

    use super::*;
    use crate::screen::output::{Output, Style};

    /// Returns a turn whose next chunk is always ready.
    fn flood() -> TurnStream {
        let answer = (0..1000).fold(Answer::new(), |answer, _| answer.text("x")).done();
        let client = ChatClient::builder(ScriptedModel::new([answer])).build().unwrap();
        client.prompt().user("go").stream()
    }

    /// Shows such a turn. Returns the outcome, the answer and the notes.
    async fn shown(interrupt: impl Future<Output = io::Result<()>>) -> (Result<(), Failure>, String, String) {
        let (mut answer, mut notes) = (Vec::new(), Vec::new());
        let mut screen =
            Screen::new(Output::new(&mut answer, Style::Piped), Output::new(&mut notes, Style::Piped));
        let outcome = show(flood(), interrupt, &mut screen).await;
        (outcome, String::from_utf8(answer).unwrap(), String::from_utf8(notes).unwrap())
    }

    #[tokio::test]
    async fn interrupt_stops_answer_while_chunks_keep_coming() {
        let mut asked = 0;
        let interrupt = poll_fn(|_| {
            asked += 1;
            if asked > 5 { Poll::Ready(Ok(())) } else { Poll::Pending }
        });
        let (outcome, answer, notes) = shown(interrupt).await;
        assert!(matches!(outcome, Err(Failure::Interrupted)), "{outcome:?}");
        assert!(answer.starts_with('x') && answer.ends_with("x\n") && answer.len() < 100, "{answer}");
        assert_eq!(notes, "[cancelled]\n");
    }

    #[tokio::test]
    async fn answer_is_complete_without_interrupt_or_signals() {
        let whole = format!("{}\n", "x".repeat(1000));
        for interrupt in [pending().left_future(), ready(Err(io::Error::other("no signals"))).right_future()]
        {
            let (outcome, answer, notes) = shown(interrupt).await;
            assert!(outcome.is_ok(), "{outcome:?}");
            assert_eq!((answer.as_str(), notes.as_str()), (whole.as_str(), ""));
        }
    }
}

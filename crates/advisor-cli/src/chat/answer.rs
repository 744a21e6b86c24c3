//! One turn of the chat.

use std::io::{self, Write};
use std::pin::pin;

use advisor_chain::chain::OnDrop;
use advisor_chain::{Chunk, Error, ErrorKind, TurnStream};
use futures::{FutureExt, StreamExt};

use super::waits::Waits;
use crate::failure::Failure;
use crate::journal_file::JournalFile;
use crate::screen::Screen;

/// A form in which the chat shows a turn.
pub(super) trait View {
    /// Shows a chunk.
    fn chunk(&mut self, chunk: &Chunk) -> io::Result<()>;

    /// Shows a note about a wait.
    fn waits(&mut self, note: &str) -> io::Result<()>;

    /// Takes the error that ended the turn. Returns the failure, with the error if it is not shown yet.
    fn failed(&mut self, error: Error) -> io::Result<Failure>;
}

impl<A: Write, N: Write> View for Screen<A, N> {
    fn chunk(&mut self, chunk: &Chunk) -> io::Result<()> {
        self.show(chunk)
    }

    fn waits(&mut self, note: &str) -> io::Result<()> {
        self.note(note)
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

/// Shows the answer as it arrives. An interrupt cancels it; the part that was shown stays in the conversation. The turn
/// is recorded in the journal, if there is one.
pub(super) async fn show(
    turn: TurnStream,
    interrupt: impl Future<Output = io::Result<()>>,
    view: &mut impl View,
    waits: &mut Waits,
    journal: Option<&JournalFile>,
) -> Result<(), Failure> {
    let Some(journal) = journal else { return show_items(turn, interrupt, view, waits, |_| {}).await };
    journal.begin(turn.turn().id());
    let shown = show_items(turn, interrupt, view, waits, |item| journal.item(item)).await;
    // The error of the turn comes before that of the journal.
    shown.and(journal.save())
}

async fn show_items(
    mut turn: TurnStream,
    interrupt: impl Future<Output = io::Result<()>>,
    view: &mut impl View,
    waits: &mut Waits,
    record: impl Fn(&Result<Chunk, Error>),
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
            Some(note) = waits.next() => view.waits(&note)?,
            item = turn.next() => match item.inspect(&record) {
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

    use super::super::waits::waits;
    use super::*;
    use crate::output::{Colours, Output, Place, Style};

    const PIPED: Style = Style { place: Place::Elsewhere, colours: Colours::Off };

    /// Returns a turn whose next chunk is always ready.
    fn flood() -> TurnStream {
        let answer = (0..1000).fold(Answer::new(), |answer, _| answer.text("x")).done();
        let client = ChatClient::builder(ScriptedModel::new([answer])).build().unwrap();
        client.prompt().user("go").stream()
    }

    /// Shows such a turn. Returns the outcome, the answer and the notes.
    async fn shown(interrupt: impl Future<Output = io::Result<()>>) -> (Result<(), Failure>, String, String) {
        let (mut answer, mut notes) = (Vec::new(), Vec::new());
        let mut screen = Screen::new(Output::new(&mut answer, PIPED), Output::new(&mut notes, PIPED));
        let outcome = show(flood(), interrupt, &mut screen, &mut waits().1, None).await;
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

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{Chunk, ConversationKey, Error, ErrorKind, ReaderError, Result, StreamItem, Text, TurnId};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use tokio::time::{Instant, sleep};

use super::link::RelayLink;
use super::{RunState, TurnRun};

/// The pause between two questions for further items of a turn, and for the end of one.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The chunks of a turn of this process or of another one, then at most one error.
pub(crate) type TurnReading = BoxStream<'static, Result<Chunk, ReaderError>>;

/// A reader of one run of a turn in another process, from its beginning.
struct RemoteReader {
    link: RelayLink,
    conversation: ConversationKey,
    turn: TurnId,
    run: Text,
    /// The number of the next item.
    next: u64,
    found: VecDeque<(u64, String)>,
    /// The time of the last answer of the relay.
    answered: Instant,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Reading,
    Ended,
}

/// Returns a reader of a turn from its beginning. `None` if the relay does not know the turn.
pub(crate) async fn read_remote(
    link: &RelayLink,
    conversation: &ConversationKey,
    turn: &TurnId,
) -> Result<Option<TurnReading>> {
    let Some(page) = link.read(conversation, turn, 0).await? else { return Ok(None) };
    let reader = RemoteReader {
        link: link.with_background_timeout(),
        conversation: conversation.clone(),
        turn: turn.clone(),
        run: page.run,
        next: 0,
        found: page.items.into(),
        answered: Instant::now(),
        progress: Progress::Reading,
    };
    let chunks = stream::unfold(reader, |mut reader| async move {
        let item = reader.next().await?;
        Some((item, reader))
    });
    Ok(Some(chunks.boxed()))
}

impl RemoteReader {
    async fn next(&mut self) -> Option<Result<Chunk, ReaderError>> {
        while self.progress == Progress::Reading {
            let item = match self.found.pop_front() {
                Some((number, item)) => self.item(number, &item),
                None => self.read_more().await,
            };
            match item {
                Ok(Some(chunk)) => {
                    if chunk.completed().is_some() {
                        self.progress = Progress::Ended;
                    }
                    return Some(Ok(chunk));
                }
                Ok(None) => {}
                Err(error) => {
                    self.progress = Progress::Ended;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// Reads the item of a number; `None` for one that is no chunk.
    fn item(&mut self, number: u64, item: &str) -> Result<Option<Chunk>, ReaderError> {
        if number > self.next {
            // The first item is the begin, so chunks have numbers one less.
            return Err(ReaderError::Behind { first: number.saturating_sub(1) });
        }
        self.next += 1;
        let item = StreamItem::from_json(item).map(StreamItem::into_result);
        item.and_then(Option::transpose).map_err(failed)
    }

    /// Asks for further items. If there are none yet, it waits before the next question.
    async fn read_more(&mut self) -> Result<Option<Chunk>, ReaderError> {
        let page = match self.link.read(&self.conversation, &self.turn, self.next).await {
            Ok(page) => page,
            Err(_) if self.answered.elapsed() < TurnRun::OWNER_TTL => {
                sleep(POLL_INTERVAL).await;
                return Ok(None);
            }
            Err(error) => return Err(failed(error)),
        };
        self.answered = Instant::now();
        let page = page.filter(|page| page.run == self.run).ok_or_else(interrupted)?;
        self.found = page.items.into();
        match page.state {
            _ if !self.found.is_empty() => {}
            RunState::Running => sleep(POLL_INTERVAL).await,
            RunState::Ended => self.progress = Progress::Ended,
            RunState::Interrupted => return Err(interrupted()),
        }
        Ok(None)
    }
}

fn failed(error: Error) -> ReaderError {
    ReaderError::Turn(Arc::new(error))
}

/// Returns the error of a turn that will not end, since its process has died or the conversation was deleted.
fn interrupted() -> ReaderError {
    failed(Error::new(ErrorKind::Truncated, "the process of the turn has stopped"))
}

//! `RelayLink`: the relay, asked within its time. Reads turns of other processes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{Chunk, ConversationKey, Error, ErrorKind, Result, StreamItem, Text, TurnId};
use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use tokio::time::{Instant, sleep, timeout};

use crate::relay::{RelayError, RunState, TurnRelay, TurnRun};
use crate::shared_turn::{ReaderError, TurnReading};

/// The timeout of a call that no request waits for.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(5);

/// The connection of a server to its relay. Each call has a timeout, whatever the relay does.
#[derive(Clone)]
pub(crate) struct RelayLink {
    relay: Arc<dyn TurnRelay>,
    timeout: Duration,
}

impl RelayLink {
    pub(crate) fn new(relay: Arc<dyn TurnRelay>, timeout: Duration) -> Self {
        Self { relay, timeout }
    }

    /// Returns the link for calls that no request waits for.
    pub(crate) fn with_background_timeout(&self) -> Self {
        Self { relay: Arc::clone(&self.relay), timeout: BACKGROUND_TIMEOUT }
    }

    /// Calls the relay.
    pub(crate) async fn ask<'a, T>(
        &'a self,
        call: impl FnOnce(&'a dyn TurnRelay) -> BoxFuture<'a, Result<T, RelayError>>,
    ) -> Result<T> {
        let late = |_| RelayError::new("it did not answer in time");
        Ok(timeout(self.timeout, call(&*self.relay)).await.map_err(late).flatten()?)
    }
}

impl fmt::Debug for RelayLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayLink").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// The pause between two questions for further items of a turn, and for the end of one.
///
/// Readers poll: a blocking `XREAD` would take a connection each, and publishing reaches no reader that comes
/// late.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);

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
    has_ended: bool,
}

/// Returns a reader of a turn from its beginning. `None` if the relay does not know the turn.
pub(crate) async fn read_remote(
    link: &RelayLink,
    conversation: &ConversationKey,
    turn: &TurnId,
) -> Result<Option<TurnReading>> {
    let Some(page) = link.ask(|relay| relay.read(conversation, turn, 0)).await? else { return Ok(None) };
    let reader = RemoteReader {
        link: link.with_background_timeout(),
        conversation: conversation.clone(),
        turn: turn.clone(),
        run: page.run,
        next: 0,
        found: page.items.into(),
        answered: Instant::now(),
        has_ended: false,
    };
    let chunks = stream::unfold(reader, |mut reader| async move {
        let item = reader.next().await?;
        Some((item, reader))
    });
    Ok(Some(chunks.fuse().boxed()))
}

impl RemoteReader {
    async fn next(&mut self) -> Option<Result<Chunk, ReaderError>> {
        while !self.has_ended {
            let item = match self.found.pop_front() {
                Some((number, item)) => self.item(number, &item),
                None => self.read_more().await,
            };
            match item {
                Ok(Some(chunk)) => {
                    self.has_ended = chunk.completed().is_some();
                    return Some(Ok(chunk));
                }
                Ok(None) => {}
                Err(error) => {
                    self.has_ended = true;
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
        match StreamItem::from_json(item).map_err(failed)? {
            StreamItem::Chunk(chunk) => Ok(Some(chunk)),
            StreamItem::Error(error) => Err(failed(error)),
            _ => Ok(None),
        }
    }

    /// Asks for further items. If there are none yet, it waits before the next question.
    async fn read_more(&mut self) -> Result<Option<Chunk>, ReaderError> {
        let read = self.link.ask(|relay| relay.read(&self.conversation, &self.turn, self.next)).await;
        let page = match read {
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
            RunState::Ended => self.has_ended = true,
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use advisor_core::{BlockDelta, BlockId, JSON_VERSION, async_trait};
    use tokio::time::timeout_at;

    use super::super::{Appended, Begun, RelayError, RunBatch, RunPage, TurnRelay};
    use super::*;

    /// A relay that answers each read as a test says.
    #[derive(Default)]
    struct Scripted {
        items: Vec<String>,
        reads: Mutex<VecDeque<Read>>,
        /// The numbers from which items were asked for.
        asked: Mutex<Vec<u64>>,
    }

    #[derive(Debug, Clone, Copy)]
    enum Read {
        /// At most this number of items.
        Finds(usize),
        Fails,
    }

    #[async_trait]
    impl TurnRelay for Scripted {
        async fn read(
            &self,
            _: &ConversationKey,
            _: &TurnId,
            from: u64,
        ) -> Result<Option<RunPage>, RelayError> {
            self.asked.lock().unwrap().push(from);
            let Read::Finds(most) = self.reads.lock().unwrap().pop_front().unwrap_or(Read::Finds(1)) else {
                return Err(RelayError::new("the way is down"));
            };
            let all = (0..).zip(self.items.iter().cloned());
            let items = all.skip_while(|(number, _)| *number < from).take(most).collect();
            let last = from + most as u64 >= self.items.len() as u64;
            let state = if last { RunState::Ended } else { RunState::Running };
            Ok(Some(RunPage::new("r", items, state)))
        }

        async fn begin(&self, _: &TurnRun) -> Result<Begun, RelayError> {
            unimplemented!("a reader only reads")
        }
        async fn release(&self, _: &TurnRun) -> Result<(), RelayError> {
            unimplemented!("a reader only reads")
        }
        async fn append(&self, _: &TurnRun, _: &RunBatch) -> Result<Appended, RelayError> {
            unimplemented!("a reader only reads")
        }
        async fn running(&self, _: &ConversationKey) -> Result<Vec<TurnId>, RelayError> {
            unimplemented!("a reader only reads")
        }
        async fn stop(&self, _: &ConversationKey, _: &TurnId) -> Result<(), RelayError> {
            unimplemented!("a reader only reads")
        }
        async fn forget(&self, _: &ConversationKey) -> Result<(), RelayError> {
            unimplemented!("a reader only reads")
        }
    }

    /// Reads a turn of four chunks. Returns their texts, the kind of an error, and the numbers that were asked for.
    async fn read(reads: Vec<Read>) -> (String, Option<ErrorKind>, Vec<u64>) {
        let chunk =
            |text: &str| Chunk::Delta { block: BlockId::new(1, 0), delta: BlockDelta::Text(text.into()) };
        let chunks = ["a", "b", "c", "d"].map(|text| serde_json::to_string(&chunk(text)).unwrap());
        let begin = serde_json::to_string(&StreamItem::Begin { version: JSON_VERSION }).unwrap();
        let items = [begin].into_iter().chain(chunks).collect();
        let relay = Arc::new(Scripted { items, reads: Mutex::new(reads.into()), ..Scripted::default() });
        let link = RelayLink::new(Arc::<Scripted>::clone(&relay), Duration::from_secs(1));
        let (conversation, turn) = (ConversationKey::new("c").unwrap(), TurnId::new("t").unwrap());
        let mut reading = read_remote(&link, &conversation, &turn).await.unwrap().unwrap();
        let (mut texts, mut failed) = (String::new(), None);
        let limit = Instant::now() + Duration::from_secs(3600);
        while let Some(item) = timeout_at(limit, reading.next()).await.unwrap() {
            match item {
                Ok(chunk) => texts.push_str(chunk.text().unwrap_or_default()),
                Err(ReaderError::Turn(error)) => failed = Some(error.kind()),
                Err(error) => panic!("{error:?}"),
            }
        }
        let asked = relay.asked.lock().unwrap().clone();
        (texts, failed, asked)
    }

    /// Wherever reads fail or find nothing, each chunk comes once, in its place.
    #[tokio::test(start_paused = true)]
    async fn a_failed_read_neither_repeats_nor_loses_a_chunk() {
        const KINDS: [Read; 4] = [Read::Finds(0), Read::Finds(1), Read::Finds(2), Read::Fails];
        for case in 0..KINDS.len().pow(5) {
            // The first read opens the turn.
            let kind = |place: u32| KINDS[case / KINDS.len().pow(place) % KINDS.len()];
            let reads: Vec<_> = [Read::Finds(case % 3)].into_iter().chain((0..5).map(kind)).collect();
            let (texts, failed, asked) = read(reads.clone()).await;
            assert_eq!((texts.as_str(), failed), ("abcd", None), "{reads:?}");
            assert!(asked.is_sorted(), "{reads:?} {asked:?}");
        }
    }

    /// The time of an owner begins with each answer, also with one that has no items.
    #[tokio::test(start_paused = true)]
    async fn a_relay_that_comes_back_in_between_does_not_end_the_reading() {
        let tries = 7 * TurnRun::OWNER_TTL.as_millis() / (10 * POLL_INTERVAL.as_millis());
        let away = || std::iter::repeat_n(Read::Fails, usize::try_from(tries).unwrap());
        let reads = [Read::Finds(1)].into_iter().chain(away()).chain([Read::Finds(0)]).chain(away());
        let (texts, failed, _) = read(reads.collect()).await;
        assert_eq!((texts.as_str(), failed), ("abcd", None));
    }

    /// A relay that stays away ends the reading. What was read before stays read.
    #[tokio::test(start_paused = true)]
    async fn a_relay_that_stays_away_ends_the_reading_after_the_time_of_an_owner() {
        let away = [Read::Finds(3)].into_iter().chain([Read::Fails; 1_000]);
        let begun = Instant::now();
        let (texts, failed, asked) = read(away.collect()).await;
        assert_eq!(texts, "ab");
        assert!(failed.is_some() && asked.iter().skip(1).all(|from| *from == 3), "{failed:?} {asked:?}");
        assert!(begun.elapsed() >= TurnRun::OWNER_TTL && begun.elapsed() < 2 * TurnRun::OWNER_TTL);
    }
}

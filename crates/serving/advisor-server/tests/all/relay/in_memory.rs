//! `InMemoryRelay`: several servers of one process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use advisor_core::{ConversationKey, TurnId, async_trait};
use advisor_server::{Appended, Begun, RelayError, RunBatch, RunEnd, RunPage, RunState, TurnRelay, TurnRun};
use tokio::time::Instant;

/// A relay for several servers in one process. Clones share the turns.
#[derive(Debug, Clone, Default)]
pub(crate) struct InMemoryRelay(Arc<Mutex<Conversations>>);

/// The items and bytes of a page, at most. One item may be larger.
const PAGE_ITEMS: usize = 256;
const PAGE_BYTES: usize = 1 << 20;

/// The turns of each conversation, in the order of their beginnings.
type Conversations = HashMap<ConversationKey, Vec<Kept>>;

/// A run, and its items.
#[derive(Debug)]
struct Kept {
    run: TurnRun,
    items: VecDeque<(u64, String)>,
    progress: Progress,
    owned_until: Instant,
    kept_until: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Running,
    StopRequested,
    Ended(RunEnd),
}

impl InMemoryRelay {
    /// Creates a relay without turns.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns the conversations, without turns that are no longer kept.
    fn kept(&self) -> MutexGuard<'_, Conversations> {
        let mut conversations = self.0.lock().unwrap();
        let now = Instant::now();
        conversations.retain(|_, turns| {
            turns.retain(|kept| now < kept.kept_until);
            !turns.is_empty()
        });
        conversations
    }
}

impl Kept {
    fn new(run: &TurnRun) -> Self {
        let now = Instant::now();
        let mut kept = Self {
            run: run.clone(),
            items: VecDeque::new(),
            progress: Progress::Running,
            owned_until: now,
            kept_until: now,
        };
        kept.renew();
        kept
    }

    fn renew(&mut self) {
        let now = Instant::now();
        (self.owned_until, self.kept_until) = (now + TurnRun::OWNER_TTL, now + TurnRun::KEPT_TTL);
    }

    fn append(&mut self, batch: &RunBatch) -> Appended {
        let next = self.items.back().map_or(0, |(number, _)| number + 1);
        let new = (batch.first..).zip(&batch.items).filter(|(number, _)| *number >= next);
        self.items.extend(new.map(|(number, item)| (number, item.clone())));
        let surplus = self.items.len().saturating_sub(self.run.kept_items);
        self.items.drain(..surplus);
        self.renew();
        let stops = self.progress == Progress::StopRequested;
        if let Some(end) = batch.end {
            self.progress = Progress::Ended(end);
        }
        if stops { Appended::StopRequested } else { Appended::Running }
    }

    fn page(&self, from: u64) -> Vec<(u64, String)> {
        let items = self.items.iter().filter(|(number, _)| *number >= from).take(PAGE_ITEMS);
        let bytes = items.clone().scan(0, |bytes, (_, item)| {
            *bytes += item.len();
            Some(*bytes)
        });
        let page =
            items.zip(bytes).enumerate().take_while(|(at, (_, bytes))| *at == 0 || *bytes <= PAGE_BYTES);
        page.map(|(_, (item, _))| item.clone()).collect()
    }

    fn is_replaceable(&self) -> bool {
        self.progress == Progress::Ended(RunEnd::Void) || self.state() == RunState::Interrupted
    }

    fn state(&self) -> RunState {
        match self.progress {
            Progress::Ended(_) => RunState::Ended,
            _ if Instant::now() < self.owned_until => RunState::Running,
            _ => RunState::Interrupted,
        }
    }
}

#[async_trait]
impl TurnRelay for InMemoryRelay {
    async fn begin(&self, run: &TurnRun) -> Result<Begun, RelayError> {
        let mut conversations = self.kept();
        let turns = conversations.entry(run.conversation.clone()).or_default();
        if let Some(known) = turns.iter_mut().find(|kept| kept.run.turn == run.turn) {
            if known.run.id == run.id {
                known.renew();
                return Ok(Begun::Owned);
            }
            if !known.is_replaceable() {
                return Ok(Begun::Elsewhere { input: known.run.input.clone() });
            }
        }
        turns.retain(|kept| kept.run.turn != run.turn);
        turns.push(Kept::new(run));
        Ok(Begun::Owned)
    }

    async fn release(&self, run: &TurnRun) -> Result<(), RelayError> {
        if let Some(turns) = self.kept().get_mut(&run.conversation) {
            turns.retain(|kept| kept.run.id != run.id);
        }
        Ok(())
    }

    async fn append(&self, run: &TurnRun, batch: &RunBatch) -> Result<Appended, RelayError> {
        let mut conversations = self.kept();
        let turns = conversations.get_mut(&run.conversation);
        let kept = turns.and_then(|turns| turns.iter_mut().find(|kept| kept.run.id == run.id));
        Ok(kept.map_or(Appended::Lost, |kept| kept.append(batch)))
    }

    async fn read(
        &self,
        conversation: &ConversationKey,
        turn: &TurnId,
        from: u64,
    ) -> Result<Option<RunPage>, RelayError> {
        let conversations = self.kept();
        let turns = conversations.get(conversation);
        let kept = turns.and_then(|turns| turns.iter().find(|kept| &kept.run.turn == turn));
        Ok(kept.map(|kept| RunPage::new(kept.run.id.clone(), kept.page(from), kept.state())))
    }

    async fn running(&self, conversation: &ConversationKey) -> Result<Vec<TurnId>, RelayError> {
        let conversations = self.kept();
        let turns = conversations.get(conversation).into_iter().flatten();
        let running = turns.filter(|kept| kept.state() == RunState::Running);
        Ok(running.map(|kept| kept.run.turn.clone()).collect())
    }

    async fn stop(&self, conversation: &ConversationKey, turn: &TurnId) -> Result<(), RelayError> {
        let mut conversations = self.kept();
        let turns = conversations.get_mut(conversation).into_iter().flatten();
        for kept in turns.filter(|kept| &kept.run.turn == turn && kept.progress == Progress::Running) {
            kept.progress = Progress::StopRequested;
        }
        Ok(())
    }

    async fn forget(&self, conversation: &ConversationKey) -> Result<(), RelayError> {
        self.kept().remove(conversation);
        Ok(())
    }
}

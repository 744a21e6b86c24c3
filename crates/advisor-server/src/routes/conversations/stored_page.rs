use std::num::NonZeroUsize;

use advisor_core::{ConversationKey, Error, ErrorKind, TurnId};
use chat_memory_advisor::store::EntryId;
use chat_memory_advisor::{TurnMessages, TurnPage};
use serde::{Deserialize, Serialize};

use crate::ChatServer;
use crate::refusal::Refusal;

/// The turns of a conversation in one answer: usually, and at most.
const TURNS: NonZeroUsize = NonZeroUsize::new(50).unwrap();
pub(super) const MOST_TURNS: NonZeroUsize = NonZeroUsize::new(100).unwrap();

/// The most turns of a page.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "usize")]
pub(in crate::routes) struct TurnLimit(NonZeroUsize);

impl Default for TurnLimit {
    fn default() -> Self {
        Self(TURNS)
    }
}

impl TryFrom<usize> for TurnLimit {
    type Error = String;

    fn try_from(limit: usize) -> Result<Self, String> {
        let limit = NonZeroUsize::new(limit).filter(|limit| *limit <= MOST_TURNS);
        limit.map(Self).ok_or_else(|| format!("a page has 1 to {MOST_TURNS} turns"))
    }
}

/// A page of the stored turns of a conversation.
#[derive(Debug)]
pub(in crate::routes) struct StoredPage {
    pub(in crate::routes) page: TurnPage,
    /// The turn that runs, if the relay answers. Without it, messages can be read.
    pub(in crate::routes) running: Result<Option<TurnId>, Refusal>,
}

impl StoredPage {
    /// Reads the last turns of a conversation, or those before a later page.
    ///
    /// # Errors
    /// If there is no such conversation, or no such page.
    pub(in crate::routes) async fn read(
        server: &ChatServer,
        key: &ConversationKey,
        tip: Option<EntryId>,
        limit: TurnLimit,
    ) -> Result<Self, Refusal> {
        let page = Self::page_and_running(server, key, tip, limit).await?;
        if page.page.turns.is_empty() && tip.is_none() && !matches!(page.running, Ok(Some(_))) {
            return Err(Refusal::not_found("there is no such conversation"));
        }
        Ok(page)
    }

    async fn page_and_running(
        server: &ChatServer,
        key: &ConversationKey,
        tip: Option<EntryId>,
        limit: TurnLimit,
    ) -> Result<Self, Refusal> {
        let turns = || async {
            let page = server.memory().turns(key, tip, limit.0).await;
            page.map_err(|error| page_refusal(&error))
        };
        let running_before = server.turns().running(key).await;
        let page = turns().await?;
        let running_before = match running_before {
            Ok(running) => running,
            Err(error) => return Ok(Self { page, running: Err(error) }),
        };
        let running = server.turns().running(key).await;
        // The messages may be those of a turn that has ended or begun since.
        let is_same = running.as_ref().is_ok_and(|running| *running == running_before);
        let page = if is_same { page } else { turns().await? };
        Ok(Self { page, running })
    }

    /// Leaves out the oldest turns if their sizes are more than a page may have. `size` gets the newest turn first, and none
    /// behind the first that is too much.
    pub(in crate::routes) fn shorten(
        &mut self,
        server: &ChatServer,
        mut size: impl FnMut(&TurnMessages) -> usize,
    ) {
        let (mut bytes, most) = (0_usize, server.limits().page_bytes);
        self.page = std::mem::take(&mut self.page).keep_newest_while(|turn| {
            bytes = bytes.saturating_add(size(turn));
            bytes <= most
        });
    }

    /// Returns the value of `before` for the page before, if there is one.
    pub(in crate::routes) fn before(&self) -> Option<String> {
        self.page.before.map(|tip| tip.to_string())
    }
}

/// Returns the size of messages in bytes.
pub(in crate::routes) fn json_size(messages: &impl Serialize) -> usize {
    serde_json::to_vec(messages).map_or(0, |json| json.len())
}

/// A page that does not exist is no failure of the server.
fn page_refusal(error: &Error) -> Refusal {
    match error.kind() {
        ErrorKind::Configuration => Refusal::not_found("the conversation has no such page"),
        _ => Refusal::from(error),
    }
}

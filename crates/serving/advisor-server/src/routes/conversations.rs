//! Lists conversations, reads one in pages of turns, deletes and stops.

pub(super) mod shown;
pub(super) mod stored_page;

use std::num::{NonZeroU64, NonZeroUsize};

use advisor_core::{ConversationKey, Error, ErrorKind, Message, Role, TurnId};
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use chat_memory_advisor::ChatMemoryAdvisor;
use chat_memory_advisor::store::{EntryId, ListOrder, Page};
use futures::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::Instrument;

use crate::ChatServer;
use crate::readiness::{LONGEST, in_time};
use crate::refusal::Refusal;
use crate::routes::approvals::waiting;
use crate::routes::conversations::stored_page::{StoredPage, written};
use crate::routes::input::{Parameters, User};
use crate::routes::page::events::View;

/// The most conversations in one answer.
const PAGE: usize = 100;

/// The characters of a title.
const TITLE: usize = 80;

/// The entries of a conversation in which its title is looked for, and the conversations that are read at once.
const FIRST_ENTRIES: usize = 4;
const TITLES_AT_ONCE: usize = 8;

/// The query of the list of conversations.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    /// The last id of the page before.
    after: Option<String>,
    #[serde(default)]
    view: View,
}

/// The query of a conversation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadQuery {
    limit: Option<NonZeroUsize>,
    /// The value of `before` of a later page.
    before: Option<NonZeroU64>,
    #[serde(default)]
    view: View,
}

/// Lists conversations, the highest id first. `next` is the value of `after` for the next page, if there is one.
pub(super) async fn list(
    State(server): State<ChatServer>,
    user: User,
    Parameters(query): Parameters<ListQuery>,
) -> Result<Json<Value>, Refusal> {
    let mut page = Page::first(user.tenant.as_str(), PAGE);
    page.order = ListOrder::Descending;
    if let Some(after) = &query.after {
        page.after = Some(user.conversation(after)?);
    }
    let keys = in_time(server.memory.store().list(&page)).await?;
    let last = keys.last().map(|key| key.conversation().to_owned());
    let next = last.filter(|_| keys.len() == PAGE);
    let conversations: Vec<Value> = match query.view {
        View::Answer => keys.iter().map(|key| key.conversation().into()).collect(),
        View::Page => {
            let _place = server.stored_reads.begin().await?;
            let until = Instant::now() + LONGEST;
            let titles = keys.into_iter().map(|key| titled(&server.memory, key, until));
            stream::iter(titles).buffered(TITLES_AT_ONCE).collect().await
        }
    };
    Ok(Json(json!({"conversations": conversations, "next": next})))
}

/// Returns a conversation with the beginning of its first message of the user. One that cannot be read by then has its id as
/// its title.
async fn titled(memory: &ChatMemoryAdvisor, key: ConversationKey, until: Instant) -> Value {
    let id = key.conversation();
    let read = memory.store().read(&key, EntryId::BEGINNING, FIRST_ENTRIES);
    let first = match Instant::now() < until {
        true => timeout_at(until, read).await.map(Result::unwrap_or_default).unwrap_or_default(),
        false => Vec::new(),
    };
    let messages = first.iter().filter_map(|entry| entry.kind.as_message());
    let text = messages.filter(|message| message.role() == Role::User).map(Message::text).next();
    let line = text.iter().flat_map(|text| text.lines()).map(str::trim).find(|line| !line.is_empty());
    let title = line.map_or_else(|| id.to_owned(), |line| line.chars().take(TITLE).collect());
    json!({"id": id, "title": title})
}

/// Returns a page of messages, oldest first: the last turns, or those before a later page.
///
/// `before` is that of the page before, if there is one. If a turn runs (`running`), its messages end as if it had been
/// interrupted now; its stream has its text. `waiting` are the calls that wait for a decision, if the server takes decisions
/// and no turn runs. Only the newest page has them.
pub(super) async fn read(
    State(server): State<ChatServer>,
    user: User,
    id: Result<Path<String>, PathRejection>,
    Parameters(ReadQuery { limit, before, view }): Parameters<ReadQuery>,
) -> Result<Json<Value>, Refusal> {
    let key = user.conversation(&id?)?;
    let page = StoredPage::read(&server, &key, before, limit).await?;
    let (turns, most) = (page.page, server.limits.page_bytes);
    let (messages, earlier) = page.place.work(move || written(turns, view, most)).await?;
    let waiting = match (before, &page.running) {
        (None, Ok(None)) => waiting(&server, &user, &key).await?,
        _ => Vec::new(),
    };
    // A turn that runs, or may run, may run these calls.
    let waiting = match waiting.is_empty() || matches!(server.turns.running(&key).await, Ok(None)) {
        true => waiting,
        false => Vec::new(),
    };
    let before = earlier.map(|tip| tip.to_string());
    let running = page.running.ok().flatten().map(|turn| turn.to_string());
    Ok(Json(json!({"messages": messages, "running": running, "before": before, "waiting": waiting})))
}

pub(super) async fn delete(
    State(server): State<ChatServer>,
    user: User,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Refusal> {
    let key = user.conversation(&id?)?;
    let deleting = async move {
        // A turn that goes on elsewhere, since the relay fails, writes nothing after the deletion.
        let _ = server.turns.stop(&key).await;
        if let Some(work) = &server.on_delete {
            let late =
                || Error::new(ErrorKind::Timeout, "the application has not deleted its part in 30 seconds");
            timeout(LONGEST, work(key.clone())).await.unwrap_or_else(|_| Err(late()))?;
        }
        let deleted = in_time(server.memory.store().delete(&key)).await;
        // Also after an error: the store may delete it later.
        server.turns.forget(&key).await;
        if let Some(inspector) = &server.inspector {
            inspector.forget(&key);
        }
        deleted.map_err(Refusal::from)
    };
    // To its end, also if the client goes away.
    let deleted = tokio::spawn(deleting.in_current_span()).await;
    deleted.unwrap_or_else(|_| Err(Refusal::internal()))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stops the running turn and those that wait. Memory keeps the shown text.
pub(super) async fn stop(
    State(server): State<ChatServer>,
    user: User,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Refusal> {
    server.turns.stop(&user.conversation(&id?)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the journal of a turn so far.
pub(super) async fn journal(
    State(server): State<ChatServer>,
    user: User,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Json<Value>, Refusal> {
    let Path((conversation, turn)) = path?;
    let key = user.conversation(&conversation)?;
    let turn = TurnId::new(&turn).map_err(Refusal::invalid)?;
    let inspector =
        server.inspector.as_ref().ok_or_else(|| Refusal::not_found("this server records no journals"))?;
    let journal = inspector.find(&(key, turn));
    let journal = journal.ok_or_else(|| Refusal::not_found("the journal of this turn is not kept"))?;
    Ok(Json(journal.written()))
}

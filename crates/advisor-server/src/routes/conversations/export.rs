//! Returns all messages of a conversation as a file, page by page.

use advisor_core::{ConversationKey, Error};
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chat_memory_advisor::store::{EntryId, ReadRange};
use chat_memory_advisor::{TurnMessages, TurnPage};
use futures::{StreamExt, stream};

use super::shown::shown_messages;
use super::stored_page::FIRST_TURNS;
use crate::ChatServer;
use crate::markdown::Room;
use crate::refusal::{Refusal, log_failure};
use crate::routes::conversations::shown::ShownIds;
use crate::routes::input::Parameters;
use crate::routes::input::User;
use crate::routes::page::events::{View, Wanted};

/// The media type of the file.
const LINES: &str = "application/x-ndjson";

/// Returns the stored messages of a conversation as a file. Only a few turns are in memory at a time.
pub(in crate::routes) async fn export(
    State(server): State<ChatServer>,
    user: User,
    id: Result<Path<String>, PathRejection>,
    Parameters(wanted): Parameters<Wanted>,
) -> Result<Response, Refusal> {
    let key = user.conversation(&id?)?;
    let ends = ends_of_pages(&server, &key).await?;
    if ends.is_empty() {
        return Err(Refusal::not_found("there is no such conversation"));
    }
    let lines = stream::iter(ends.into_iter().rev()).then(move |end| {
        let (server, key) = (server.clone(), key.clone());
        async move {
            let place = server.stored_reads().wait().await;
            let (view, most) = (wanted.view, server.limits().page_bytes);
            let page = page(&server, &key, end).await.inspect_err(log_failure)?;
            let written = move || written(&page.turns, view, most);
            match place {
                Some(place) => place.work(written).await,
                None => Ok(written()),
            }
        }
    });
    let headers =
        [(CONTENT_TYPE, LINES), (CONTENT_DISPOSITION, "attachment; filename=\"conversation.ndjson\"")];
    Ok((headers, Body::from_stream(lines)).into_response())
}

/// Returns the entries with which the pages of a conversation end, the last page first. Entries that are appended
/// meanwhile are on none of them.
async fn ends_of_pages(server: &ChatServer, key: &ConversationKey) -> Result<Vec<EntryId>, Refusal> {
    let failed = |error: Error| Refusal::from(&error);
    let mut end = {
        let _place = server.stored_reads().begin().await?;
        let last = server.memory().store().load(key, ReadRange::LastTurns(1)).await;
        let last = last.map_err(|error| failed(error.into()))?;
        last.entries.last().map(|last| EntryId::new(last.seq))
    };
    let mut ends = Vec::new();
    while let Some(last) = end {
        ends.push(last);
        // Others read between the pages.
        let _place = server.stored_reads().begin().await?;
        end = page(server, key, last).await.map_err(failed)?.before;
    }
    Ok(ends)
}

async fn page(server: &ChatServer, key: &ConversationKey, end: EntryId) -> Result<TurnPage, Error> {
    server.memory().turns(key, Some(end), FIRST_TURNS).await
}

/// Returns the lines of these turns, with at most this many bytes of elements.
fn written(turns: &[TurnMessages], view: View, elements: usize) -> Bytes {
    let mut lines = Vec::new();
    let (mut ids, mut room) = (ShownIds::default(), Room::new(elements));
    for turn in turns {
        for message in shown_messages(turn, view, &mut ids, &mut room) {
            // A message is always JSON.
            if serde_json::to_writer(&mut lines, &message).is_ok() {
                lines.push(b'\n');
            }
        }
    }
    lines.into()
}

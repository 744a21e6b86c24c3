//! Commands about whole conversations.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use advisor_chain::memory::store::{EntryId, Page, export};
use advisor_chain::{ConversationKey, Error, Result};
use futures::TryStreamExt;

use super::super::session::Session;
use crate::failure::Failure;
use crate::printable::{brief, printable};
use crate::private_file::create_private;
use crate::screen::Screen;

/// The most conversations that are listed.
const MOST: usize = 100;

pub(super) async fn begin<A: Write, N: Write>(
    session: &mut Session,
    screen: &mut Screen<A, N>,
) -> Result<(), Failure> {
    session.begin_another().await?;
    Ok(screen.note(&format!("This is conversation {}.", session.conversation.conversation()))?)
}

pub(super) async fn list<A: Write, N: Write>(
    session: &Session,
    screen: &mut Screen<A, N>,
) -> Result<(), Failure> {
    const LENGTH: usize = 60;
    let page = Page::first(session.conversation.tenant(), MOST);
    let keys = session.store.list(&page).await.map_err(Error::from)?;
    for key in &keys {
        let mark = if *key == session.conversation { '*' } else { ' ' };
        let first = session.store.read(key, EntryId::BEGINNING, 1).await.map_err(Error::from)?;
        let question = first.first().and_then(|entry| entry.kind.as_message()).map(|message| message.text());
        let question = brief(&question.unwrap_or_default(), LENGTH);
        screen.note(&format!("{mark} {:<12} {question}", brief(key.conversation(), LENGTH)))?;
    }
    match keys.len() {
        0 => screen.note("There are no conversations yet.")?,
        MOST => screen.note("  … there may be more: `advisor conversations FILE` lists all")?,
        _ => {}
    }
    Ok(())
}

pub(super) async fn open<A: Write, N: Write>(
    id: &str,
    session: &mut Session,
    screen: &mut Screen<A, N>,
) -> Result<(), Failure> {
    let Some(key) = existing(id, session, screen).await? else { return Ok(()) };
    session.conversation = key;
    screen.note(&format!("This is conversation {id}. /history shows it."))?;
    match session.interruption().await? {
        Some(note) => Ok(screen.note(note)?),
        None => Ok(()),
    }
}

pub(super) async fn delete<A: Write, N: Write>(
    id: &str,
    session: &Session,
    screen: &mut Screen<A, N>,
) -> Result<(), Failure> {
    let Some(key) = existing(id, session, screen).await? else { return Ok(()) };
    session.memory.close_unfinished().await?;
    session.store.delete(&key).await.map_err(Error::from)?;
    Ok(screen.note(&format!("Conversation {id} is deleted."))?)
}

/// Returns the key of a conversation that exists. Otherwise it says so.
async fn existing<A: Write, N: Write>(
    id: &str,
    session: &Session,
    screen: &mut Screen<A, N>,
) -> Result<Option<ConversationKey>, Failure> {
    let key = ConversationKey::in_tenant(session.conversation.tenant(), id)?;
    if session.exists(&key).await? {
        return Ok(Some(key));
    }
    screen.note(&format!("There is no conversation {id}; /conversations lists them."))?;
    Ok(None)
}

/// Exports this conversation to a file that does not exist yet.
pub(super) async fn save<A: Write, N: Write>(
    file: &Path,
    session: &Session,
    screen: &mut Screen<A, N>,
) -> Result<(), Failure> {
    session.memory.close_unfinished().await?;
    let name = printable(&file.display().to_string());
    let unwritten = |error| Error::configuration(format!("{name} cannot be written")).with_source(error);
    let mut out = BufWriter::new(create_private(file).map_err(unwritten)?);
    let mut lines = pin!(export(Arc::clone(&session.store), session.conversation.clone()));
    while let Some(line) = lines.try_next().await.map_err(Error::from)? {
        out.write_all(line.as_bytes()).map_err(unwritten)?;
    }
    out.flush().map_err(unwritten)?;
    Ok(screen.note(&format!("Saved to {name}; `advisor import` reads it."))?)
}

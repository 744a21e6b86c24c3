//! `/history`: the messages of the conversation.

use std::io::Write;

use advisor_chain::messages::{BlockContent, MessageContent};
use advisor_chain::{Message, Role};

use super::super::session::Session;
use crate::failure::Failure;
use crate::printable::{brief, escaped};
use crate::screen::Screen;
use crate::screen::attached::{Sources, media_line, media_of};

/// The most messages that are shown, from the end.
const MOST: usize = 200;

/// The most characters of a call or a result.
const LENGTH: usize = 100;

pub(super) async fn show<A: Write, N: Write>(
    session: &Session,
    screen: &mut Screen<A, N>,
) -> Result<(), Failure> {
    let transcript = session.memory.transcript(&session.conversation).await?;
    let left_out = transcript.len().saturating_sub(MOST);
    if transcript.is_empty() {
        screen.note("This conversation has no messages yet.")?;
    } else if left_out > 0 {
        screen.note(&format!("… {left_out} earlier messages"))?;
    }
    for message in transcript.iter().skip(left_out) {
        show_message(message, screen)?;
    }
    match session.interruption().await? {
        Some(note) => Ok(screen.note(note)?),
        None => Ok(()),
    }
}

fn show_message<A: Write, N: Write>(message: &Message, screen: &mut Screen<A, N>) -> Result<(), Failure> {
    let text = message.text();
    match message.role() {
        Role::User => {
            screen.note(&format!("> {text}"))?;
            if let MessageContent::User(parts) = message.content() {
                parts.iter().filter_map(media_of).try_for_each(|media| screen.note(&media_line(media)))?;
            }
        }
        Role::Assistant => {
            if !text.is_empty() {
                screen.text(&text)?;
            }
            for block in message.blocks() {
                if let BlockContent::Media(media) = block.content() {
                    screen.note(&media_line(media))?;
                }
            }
            if let Some(note) = Sources::of(message.blocks()).take_note() {
                screen.note(&note)?;
            }
            for call in message.tool_calls() {
                screen.note(&format!("⚙ {} {}", escaped(&call.name), brief(&call.arguments, LENGTH)))?;
            }
        }
        Role::Tool => {
            if let Some(result) = message.tool_result() {
                let mark = if result.is_error { '✗' } else { '✓' };
                screen.note(&format!(
                    "{mark} {}: {}",
                    escaped(&result.name),
                    brief(&result.text(), LENGTH)
                ))?;
            }
        }
        Role::System => {}
    }
    Ok(())
}

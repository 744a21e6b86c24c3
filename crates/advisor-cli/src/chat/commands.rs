//! The commands of the chat.

use std::io::Write;

use advisor_chain::memory::store::{EntryId, Page};
use advisor_chain::messages::{BlockContent, MessageContent};
use advisor_chain::{ConversationKey, Error, Message, Role, TurnStream};

use super::session::Session;
use crate::failure::Failure;
use crate::printable::{brief, escaped};
use crate::screen::Screen;
use crate::screen::notes::{Sources, media_line, media_of};

/// Each command with its parameters, and its effect.
const COMMANDS: [(&str, &str); 8] = [
    ("/help", "shows the commands"),
    ("/new", "begins a new conversation"),
    ("/history", "shows this conversation"),
    ("/open [ID]", "continues another conversation, or lists them"),
    ("/retry", "asks the last question again; the earlier answer is kept on its branch"),
    ("/edit TEXT", "asks this in place of the last question"),
    ("/approve", "asks about the calls that wait for a decision"),
    ("/quit", "ends the chat"),
];

/// The most conversations that are listed, and the most messages that are shown, from the end.
const CONVERSATIONS: usize = 100;
const MESSAGES: usize = 200;

/// The most characters of a call, a result or a listed question.
const LENGTH: usize = 100;

const NO_QUESTION: &str = "There is no question in this conversation yet.";

/// A command that a user types in place of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    New,
    History,
    /// The conversation, if it is given.
    Open(Option<String>),
    Retry,
    Edit(String),
    Approve,
    Quit,
}

/// A line of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    Question(String),
    Command(Command),
    /// The note about an invalid command.
    Hint(String),
}

/// The next step of the chat after a command.
pub(super) enum Next {
    Prompt,
    /// A turn to show.
    Ask(Box<TurnStream>),
    /// The calls that wait are to be decided.
    Decide,
    Quit,
}

/// Returns the commands, one a line.
pub(crate) fn help() -> String {
    COMMANDS.map(|(usage, does)| format!("{usage:<11} {does}")).join("\n")
}

/// Reads a line. One that begins with a slash is a command.
pub(super) fn read(line: &str) -> Line {
    if !line.starts_with('/') {
        return Line::Question(line.to_owned());
    }
    let (name, parameter) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let parameter = parameter.trim();
    let given = (!parameter.is_empty()).then(|| parameter.to_owned());
    let command = match (name, given) {
        ("/help", None) => Command::Help,
        ("/new", None) => Command::New,
        ("/history", None) => Command::History,
        ("/open", id) => Command::Open(id),
        ("/retry", None) => Command::Retry,
        ("/edit", Some(text)) => Command::Edit(text),
        ("/approve", None) => Command::Approve,
        ("/quit" | "/exit", None) => Command::Quit,
        _ => return Line::Hint(hint(name)),
    };
    Line::Command(command)
}

fn hint(name: &str) -> String {
    let is_named = |usage: &str| usage.split(' ').next() == Some(name);
    match COMMANDS.iter().find(|(usage, _)| is_named(usage)) {
        Some((usage, does)) => format!("Usage: {usage} ({does})"),
        None => format!(
            "There is no command {}; /help lists the commands. A line that begins with a space is always a question.",
            brief(name, 40)
        ),
    }
}

/// Runs a command.
pub(super) async fn run<A: Write, N: Write>(
    command: Command,
    session: &mut Session,
    screen: &mut Screen<A, N>,
) -> Result<Next, Failure> {
    match command {
        Command::Help => screen.note(&help())?,
        Command::New => {
            session.begin_another().await?;
            screen.note(&format!("This is conversation {}.", session.conversation.conversation()))?;
        }
        Command::History => history(session, screen).await?,
        Command::Open(Some(id)) => open(&id, session, screen).await?,
        Command::Open(None) => list(session, screen).await?,
        Command::Retry => return ask_again(None, session, screen).await,
        Command::Edit(text) => return ask_again(Some(text), session, screen).await,
        Command::Approve => return Ok(Next::Decide),
        Command::Quit => return Ok(Next::Quit),
    }
    Ok(Next::Prompt)
}

/// Asks the last question again, with another text if one is given.
async fn ask_again<A: Write, N: Write>(
    text: Option<String>,
    session: &Session,
    screen: &mut Screen<A, N>,
) -> Result<Next, Failure> {
    let Some((turn, question)) = session.last_question().await? else {
        screen.note(NO_QUESTION)?;
        return Ok(Next::Prompt);
    };
    let text = text.unwrap_or(question);
    screen.note(&format!("> {text}"))?;
    Ok(Next::Ask(Box::new(session.ask_in_place_of(turn, &text))))
}

async fn list<A: Write, N: Write>(session: &Session, screen: &mut Screen<A, N>) -> Result<(), Failure> {
    let page = Page::first(session.conversation.tenant(), CONVERSATIONS);
    let keys = session.store.list(&page).await.map_err(Error::from)?;
    for key in &keys {
        let mark = if *key == session.conversation { '*' } else { ' ' };
        let first = session.store.read(key, EntryId::BEGINNING, 1).await.map_err(Error::from)?;
        let question = first.first().and_then(|entry| entry.kind.as_message()).map(Message::text);
        let question = brief(&question.unwrap_or_default(), LENGTH);
        screen.note(&format!("{mark} {:<12} {question}", brief(key.conversation(), LENGTH)))?;
    }
    match keys.len() {
        0 => screen.note("There are no conversations yet.")?,
        CONVERSATIONS => screen.note("  … there may be more: `advisor conversations FILE` lists all")?,
        _ => {}
    }
    Ok(())
}

async fn open<A: Write, N: Write>(
    id: &str,
    session: &mut Session,
    screen: &mut Screen<A, N>,
) -> Result<(), Failure> {
    let key = ConversationKey::in_tenant(session.conversation.tenant(), id)?;
    if !session.exists(&key).await? {
        return Ok(screen.note(&format!("There is no conversation {id}; /open lists them."))?);
    }
    session.conversation = key;
    screen.note(&format!("This is conversation {id}. /history shows it."))?;
    note_interruption(session, screen).await
}

async fn note_interruption<A: Write, N: Write>(
    session: &Session,
    screen: &mut Screen<A, N>,
) -> Result<(), Failure> {
    match session.interruption().await? {
        Some(note) => Ok(screen.note(note)?),
        None => Ok(()),
    }
}

async fn history<A: Write, N: Write>(session: &Session, screen: &mut Screen<A, N>) -> Result<(), Failure> {
    let transcript = session.memory.transcript(&session.conversation).await?;
    let left_out = transcript.len().saturating_sub(MESSAGES);
    if transcript.is_empty() {
        screen.note("This conversation has no messages yet.")?;
    } else if left_out > 0 {
        screen.note(&format!("… {left_out} earlier messages"))?;
    }
    for message in transcript.iter().skip(left_out) {
        show_message(message, screen)?;
    }
    note_interruption(session, screen).await
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
                let (name, text) = (escaped(&result.name), brief(&result.text(), LENGTH));
                screen.note(&format!("{mark} {name}: {text}"))?;
            }
        }
        Role::System => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests;

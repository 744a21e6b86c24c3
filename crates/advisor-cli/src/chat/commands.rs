//! The commands of the chat.

use std::io::Write;

use advisor_chain::{Message, Role, TurnStream};

use super::session::Session;
use crate::failure::Failure;
use crate::printable::{brief, escaped};
use crate::screen::Screen;

/// Each command with its parameters, and its effect.
const COMMANDS: [(&str, &str); 7] = [
    ("/help", "shows the commands"),
    ("/new", "begins a new conversation"),
    ("/history", "shows this conversation"),
    ("/retry", "asks the last question again; the earlier answer is kept on its branch"),
    ("/edit TEXT", "asks this in place of the last question"),
    ("/approve", "asks about the calls that wait for a decision"),
    ("/quit", "ends the chat"),
];

/// The most messages that are shown, from the end.
const MESSAGES: usize = 200;

/// The most characters of a call or a result.
const LENGTH: usize = 100;

/// The next step of the chat after a line.
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

/// Runs the command of a line. One that does not begin with a slash is a question.
pub(super) async fn run<A: Write, N: Write>(
    line: &str,
    session: &mut Session,
    screen: &mut Screen<A, N>,
) -> Result<Next, Failure> {
    if !line.starts_with('/') {
        return Ok(Next::Ask(Box::new(session.ask(line))));
    }
    let (name, parameter) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    match (name, parameter.trim()) {
        ("/help", "") => screen.note(&help())?,
        ("/new", "") => {
            session.begin_another().await?;
            screen.note(&format!("This is conversation {}.", session.conversation.conversation()))?;
        }
        ("/history", "") => history(session, screen).await?,
        ("/retry", "") => return ask_again(None, session, screen).await,
        ("/edit", text) if !text.is_empty() => return ask_again(Some(text), session, screen).await,
        ("/approve", "") => return Ok(Next::Decide),
        ("/quit" | "/exit", "") => return Ok(Next::Quit),
        _ => screen.note(&hint(name))?,
    }
    Ok(Next::Prompt)
}

/// Asks the last question again, with another text if one is given.
async fn ask_again<A: Write, N: Write>(
    text: Option<&str>,
    session: &Session,
    screen: &mut Screen<A, N>,
) -> Result<Next, Failure> {
    let Some((turn, question)) = session.last_question().await? else {
        screen.note("There is no question in this conversation yet.")?;
        return Ok(Next::Prompt);
    };
    let text = text.unwrap_or(&question);
    screen.note(&format!("> {text}"))?;
    Ok(Next::Ask(Box::new(session.ask_in_place_of(turn, text))))
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
    match session.interruption().await? {
        Some(note) => Ok(screen.note(note)?),
        None => Ok(()),
    }
}

fn show_message<A: Write, N: Write>(message: &Message, screen: &mut Screen<A, N>) -> Result<(), Failure> {
    let text = message.text();
    match message.role() {
        Role::User => screen.note(&format!("> {text}"))?,
        Role::Assistant => {
            if !text.is_empty() {
                screen.text(&text)?;
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

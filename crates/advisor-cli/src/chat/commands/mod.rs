//! The commands of the chat.

mod conversations;
mod history;
mod parse;

use std::io::Write;

use advisor_chain::TurnStream;
use advisor_chain::messages::Usage;

pub(super) use self::parse::{Command, Line, read};
use super::session::{Question, Session};
use crate::failure::Failure;
use crate::printable::{brief, escaped};
use crate::screen::Screen;

/// The next step of the chat after a command.
pub(super) enum Next {
    Prompt,
    /// A turn to show.
    Ask(Box<TurnStream>),
    /// A question to edit and to ask again.
    Edit(Question),
    /// The calls that wait are to be decided.
    Decide,
    Quit,
}

/// Runs a command.
pub(super) async fn run<A: Write, N: Write>(
    command: Command,
    session: &mut Session,
    screen: &mut Screen<A, N>,
) -> Result<Next, Failure> {
    match command {
        Command::Help => screen.note(&help())?,
        Command::New => conversations::begin(session, screen).await?,
        Command::History => history::show(session, screen).await?,
        Command::Conversations => conversations::list(session, screen).await?,
        Command::Open(id) => conversations::open(&id, session, screen).await?,
        Command::Delete(id) => conversations::delete(&id, session, screen).await?,
        Command::Save(file) => conversations::save(&file, session, screen).await?,
        Command::Retry => return ask_again(None, session, screen).await,
        Command::Edit(Some(text)) => return ask_again(Some(text), session, screen).await,
        Command::Edit(None) => match session.last_question().await? {
            Some(question) => return Ok(Next::Edit(question)),
            None => screen.note(NO_QUESTION)?,
        },
        Command::Approve => return Ok(Next::Decide),
        Command::Tools => tools(session, screen)?,
        Command::Usage => {
            screen.note(&format!("last turn: {}", tokens(&session.spent.last_turn)))?;
            screen.note(&format!("this chat: {}", tokens(&session.spent.chat)))?;
        }
        Command::Model(name) => {
            if let Some(name) = name {
                session.model = name;
            }
            screen.note(&format!("model: {}", session.model))?;
        }
        Command::Reasoning(reasoning) => {
            screen.set_reasoning(reasoning);
            screen.note(&format!("Reasoning is {}.", reasoning.as_str()))?;
        }
        Command::Quit => return Ok(Next::Quit),
    }
    Ok(Next::Prompt)
}

const NO_QUESTION: &str = "There is no question in this conversation yet.";

/// Asks the last question again, with another text if one is given.
async fn ask_again<A: Write, N: Write>(
    text: Option<String>,
    session: &mut Session,
    screen: &mut Screen<A, N>,
) -> Result<Next, Failure> {
    let Some(question) = session.last_question().await? else {
        screen.note(NO_QUESTION)?;
        return Ok(Next::Prompt);
    };
    let text = text.unwrap_or(question.text);
    screen.note(&format!("> {text}"))?;
    Ok(Next::Ask(Box::new(session.ask_in_place_of(question.turn, &text))))
}

fn help() -> String {
    let lines = parse::COMMANDS.iter().map(|(usage, does)| format!("{usage:<18} {does}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn tools<A: Write, N: Write>(session: &Session, screen: &mut Screen<A, N>) -> Result<(), Failure> {
    const LENGTH: usize = 120;
    if session.client.tools().is_empty() {
        screen.note("The model has no tools.")?;
    }
    for tool in session.client.tools().definitions() {
        screen.note(&format!("{}: {}", escaped(&tool.name), brief(&tool.description, LENGTH)))?;
    }
    Ok(())
}

fn tokens(usage: &Usage) -> String {
    let count = |count: Option<u64>| count.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
    let cached = usage.cached_input_tokens.map(|cached| format!(" ({cached} cached)")).unwrap_or_default();
    format!("{} tokens in{cached}, {} out", count(usage.input_tokens), count(usage.output_tokens))
}

#[cfg(test)]
mod tests;

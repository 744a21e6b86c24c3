//! The chat with a user: questions, commands, approvals and interrupts.

use std::io::Write;
use std::ops::ControlFlow;

use advisor_chain::TurnStream;
use advisor_chain::tools::{ClientSideCall, Decision};
use serde_json::Value;

use super::commands::{self, Next};
use super::input::{Entered, Input, Interrupts};
use super::session::Session;
use super::turn;
use crate::failure::Failure;
use crate::printable::{escaped, escaped_json};
use crate::screen::{self, Screen};

/// The question about a call.
const QUESTION: &str = "y runs it, n refuses it (n REASON tells the model why), e edits the arguments";

/// The effect of an interrupt at the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtPrompt {
    /// Clears the line.
    Clears,
    /// Ends the chat, since the user entered nothing after the previous interrupt.
    Ends,
}

/// A chat on a screen.
pub(super) struct Talk<A, N> {
    session: Session,
    screen: Screen<A, N>,
    input: Input,
    interrupts: Interrupts,
}

impl<A: Write, N: Write> Talk<A, N> {
    pub(super) fn new(session: Session, screen: Screen<A, N>) -> Result<Self, Failure> {
        Ok(Self { session, screen, input: Input::standard()?, interrupts: Interrupts::new() })
    }

    /// Answers the lines of the input until it ends.
    pub(super) async fn run(&mut self) -> Result<(), Failure> {
        if !self.input.is_interactive() {
            return self.answer_all().await;
        }
        self.greet().await?;
        let mut at_prompt = AtPrompt::Clears;
        loop {
            let line = match self.input.next("", &mut self.interrupts).await? {
                Entered::End => return Ok(()),
                Entered::Interrupt if at_prompt == AtPrompt::Ends => return Err(Failure::Interrupted),
                Entered::Interrupt => {
                    at_prompt = AtPrompt::Ends;
                    self.screen.note("Ctrl-C again ends the chat.")?;
                    continue;
                }
                Entered::Line(line) => line,
            };
            at_prompt = AtPrompt::Clears;
            match self.answer(line.trim_end_matches(['\r', '\n'])).await {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(()),
                Err(Failure::Chain(error)) => self.screen.error(&screen::chain_of(&error))?,
                Err(Failure::Interrupted) => {
                    at_prompt = AtPrompt::Ends;
                    self.close_stopped().await?;
                }
                Err(other) => return Err(other),
            }
        }
    }

    /// Answers each line of a file or a pipe as a question. The first failure ends it.
    async fn answer_all(&mut self) -> Result<(), Failure> {
        while let Entered::Line(line) = self.input.next("", &mut self.interrupts).await? {
            let line = line.trim_end_matches(['\r', '\n']);
            if !line.trim().is_empty() {
                self.session.refuse_waiting().await?;
                let turn = self.session.ask(line);
                self.show(turn).await?;
            }
        }
        Ok(self.session.refuse_waiting().await?)
    }

    /// Answers a line of a user: runs its command, or asks its question.
    async fn answer(&mut self, line: &str) -> Result<ControlFlow<()>, Failure> {
        if line.trim().is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        match commands::run(line, &mut self.session, &mut self.screen).await? {
            Next::Ask(turn) => {
                self.show(*turn).await?;
                self.decide().await?;
            }
            Next::Decide => self.decide().await?,
            Next::Quit => return Ok(ControlFlow::Break(())),
            Next::Prompt => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn show(&mut self, turn: TurnStream) -> Result<(), Failure> {
        if self.input.is_interactive() {
            // A new message from the user discards earlier interrupts.
            self.interrupts.forget();
        }
        turn::show(turn, self.interrupts.next(), &mut self.screen).await
    }

    /// Writes the end of a stopped turn at once, so that it is kept even if the program is killed.
    async fn close_stopped(&mut self) -> Result<(), Failure> {
        match self.session.memory.close_unfinished().await {
            Ok(()) => Ok(()),
            Err(error) => Ok(self.screen.error(&screen::chain_of(&error))?),
        }
    }

    async fn greet(&mut self) -> Result<(), Failure> {
        let names: Vec<String> =
            self.session.client.tools().definitions().map(|tool| escaped(&tool.name)).collect();
        let tools = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        self.screen.note("Ctrl-C stops an answer, Ctrl-D ends the chat, /help lists the commands.")?;
        self.screen.note(&format!("Tools: {tools}."))?;
        if let Some(note) = self.session.interruption().await? {
            self.screen.note(note)?;
        }
        if !self.session.waiting().await?.is_empty() {
            self.screen.note("[calls wait for a decision; /approve asks about them]")?;
        }
        Ok(())
    }

    /// Asks the user about the calls that wait, and continues the conversation, until none waits or the user leaves them.
    async fn decide(&mut self) -> Result<(), Failure> {
        loop {
            let waiting = self.session.waiting().await?;
            if waiting.is_empty() {
                return Ok(());
            }
            let Some(decisions) = self.decisions(&waiting).await? else {
                return Ok(self
                    .screen
                    .note("[the calls wait; /approve asks again, a question goes on without them]")?);
            };
            let turn = self.session.resume(decisions);
            self.show(turn).await?;
        }
    }

    /// Returns the decisions about all calls. `None` if the user leaves one of them open.
    async fn decisions(&mut self, waiting: &[ClientSideCall]) -> Result<Option<Vec<Decision>>, Failure> {
        let mut decisions = Vec::new();
        for call in waiting {
            self.screen.note(&format!(
                "? {} {}",
                escaped(&call.call.name),
                escaped_json(&call.call.arguments)
            ))?;
            if call.started {
                self.screen.note("It was started and is lost. The model is asked to verify it.")?;
                continue;
            }
            match self.decision(call).await? {
                Some(decision) => decisions.push(decision),
                None => return Ok(None),
            }
        }
        Ok(Some(decisions))
    }

    /// Returns the decision about a call. `None` if the user leaves it open.
    async fn decision(&mut self, call: &ClientSideCall) -> Result<Option<Decision>, Failure> {
        loop {
            self.screen.note(QUESTION)?;
            // Keys that were typed before say nothing about a call that was not shown.
            self.input.discard()?;
            let Entered::Line(line) = self.input.next("", &mut self.interrupts).await? else {
                return Ok(None);
            };
            let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            let decision = match word {
                "y" | "yes" if rest.is_empty() => call.approve()?,
                "n" | "no" if rest.trim().is_empty() => call.deny("the user refuses it")?,
                "n" | "no" => call.deny(rest.trim())?,
                "e" | "edit" if rest.is_empty() => match self.edited(call).await? {
                    Some(decision) => decision,
                    None => continue,
                },
                _ => continue,
            };
            return Ok(Some(decision));
        }
    }

    /// Returns an approval with the arguments that the user has edited.
    async fn edited(&mut self, call: &ClientSideCall) -> Result<Option<Decision>, Failure> {
        let draft = escaped_json(&call.call.arguments);
        let Entered::Line(text) = self.input.next(&draft, &mut self.interrupts).await? else {
            return Ok(None);
        };
        // The text itself keeps what a JSON value does not, such as long numbers.
        if text.trim() == draft.trim() {
            return Ok(Some(call.approve()?));
        }
        match serde_json::from_str::<Value>(&text) {
            Ok(arguments) => Ok(Some(call.approve_with(arguments)?)),
            Err(error) => {
                self.screen.note(&format!("These arguments are no JSON: {error}"))?;
                Ok(None)
            }
        }
    }
}

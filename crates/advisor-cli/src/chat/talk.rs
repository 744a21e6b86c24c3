//! The chat with a user: questions, commands, approvals and interrupts.

mod approvals;

use std::io::{self, Write};
use std::ops::ControlFlow;

use advisor_chain::{Chunk, Error, TurnStream};

use super::answer::{self, View};
use super::commands::{self, Line, Next};
use super::input::{Entered, Input};
use super::interrupts::Interrupts;
use super::session::{Session, Spent};
use super::waits::Waits;
use crate::failure::Failure;
use crate::printable::{escaped, printable};
use crate::screen::{self, Screen};

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
    waits: Waits,
}

impl<A: Write, N: Write> Talk<A, N> {
    pub(super) fn new(session: Session, screen: Screen<A, N>, waits: Waits) -> Result<Self, Failure> {
        Ok(Self { session, screen, input: Input::standard()?, interrupts: Interrupts::new(), waits })
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
        let next = match commands::read(line) {
            Line::Hint(hint) => {
                self.screen.note(&hint)?;
                Next::Prompt
            }
            Line::Command(command) => commands::run(command, &mut self.session, &mut self.screen).await?,
            Line::Question(text) => Next::Ask(Box::new(self.session.ask(&text))),
        };
        match next {
            Next::Ask(turn) => {
                self.show(*turn).await?;
                self.decide().await?;
            }
            Next::Decide => self.decide().await?,
            Next::Edit(question) => {
                match self.input.next(&printable(&question.text), &mut self.interrupts).await? {
                    Entered::Line(text) if !text.trim().is_empty() => {
                        let turn = self.session.ask_in_place_of(question.turn, text.trim_end());
                        self.show(turn).await?;
                        self.decide().await?;
                    }
                    _ => self.screen.note("The question stays as it is.")?,
                }
            }
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
        let mut counted = Counted { screen: &mut self.screen, spent: &mut self.session.spent };
        let (interrupt, journal) = (self.interrupts.next(), self.session.journal.as_ref());
        answer::show(turn, interrupt, &mut counted, &mut self.waits, journal).await
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
}

/// A screen that also counts the tokens of the shown turns.
struct Counted<'a, A, N> {
    screen: &'a mut Screen<A, N>,
    spent: &'a mut Spent,
}

impl<A: Write, N: Write> View for Counted<'_, A, N> {
    fn chunk(&mut self, chunk: &Chunk) -> io::Result<()> {
        if let Chunk::Usage { usage, .. } = chunk {
            self.spent.add(usage);
        }
        self.screen.chunk(chunk)
    }

    fn waits(&mut self, note: &str) -> io::Result<()> {
        self.screen.waits(note)
    }

    fn failed(&mut self, error: Error) -> io::Result<Failure> {
        self.screen.failed(error)
    }
}

//! Calls that wait for the user.

use std::io::Write;

use advisor_chain::tools::{ClientSideCall, Decision};
use serde_json::Value;

use super::Talk;
use crate::chat::input::Entered;
use crate::failure::Failure;
use crate::printable::{escaped, escaped_json};

const QUESTION: &str = "y runs it, n refuses it (n REASON tells the model why), e edits the arguments";

/// What the user says about a call.
enum Said {
    Decision(Decision),
    /// Nothing, so the call still waits.
    Nothing,
}

impl<A: Write, N: Write> Talk<A, N> {
    /// Asks the user about the calls that wait, and continues the conversation, until none waits or the user leaves them.
    pub(super) async fn decide(&mut self) -> Result<(), Failure> {
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
                Said::Decision(decision) => decisions.push(decision),
                Said::Nothing => return Ok(None),
            }
        }
        Ok(Some(decisions))
    }

    async fn decision(&mut self, call: &ClientSideCall) -> Result<Said, Failure> {
        loop {
            self.screen.note(QUESTION)?;
            // Keys that were typed before say nothing about a call that was not shown.
            self.input.discard()?;
            let Entered::Line(line) = self.input.next("", &mut self.interrupts).await? else {
                return Ok(Said::Nothing);
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
            return Ok(Said::Decision(decision));
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

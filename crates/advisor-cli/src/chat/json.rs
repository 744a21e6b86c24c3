//! `advisor chat --json`: the items of each turn as JSON Lines, in the form of `docs/json.md`.

use std::io::{self, Write};

use advisor_chain::chain::StreamItem;
use advisor_chain::messages::JSON_VERSION;
use advisor_chain::{Chunk, Error, ErrorKind};
use serde::Serialize;

use super::input::{Entered, Input, Interrupts};
use super::session::Session;
use super::turn::{self, View};
use crate::failure::Failure;
use crate::printable::escaped_json;

/// Answers each line of standard input with a stream of items.
pub(super) async fn talk(session: &Session, out: &mut impl Write) -> Result<(), Failure> {
    let mut input = Input::lines();
    let mut interrupts = Interrupts::new();
    session.refuse_waiting().await?;
    while let Entered::Line(line) = input.next("", &mut interrupts).await? {
        let line = line.trim_end_matches(['\r', '\n']);
        if line.trim().is_empty() {
            continue;
        }
        let mut items = Items::begin(out)?;
        turn::show(session.ask(line), interrupts.next(), &mut items).await?;
    }
    Ok(())
}

/// The items of one turn, one a line. The encoder of `advisor-sse` would shorten errors to what its clients may
/// learn; the reader of this program is its operator.
struct Items<'a, W>(&'a mut W);

impl<'a, W: Write> Items<'a, W> {
    fn begin(out: &'a mut W) -> io::Result<Self> {
        let mut items = Self(out);
        items.write(&StreamItem::Begin { version: JSON_VERSION })?;
        Ok(items)
    }

    fn write(&mut self, item: &impl Serialize) -> io::Result<()> {
        let line = escaped_json(&serde_json::to_string(item)?);
        writeln!(self.0, "{line}")?;
        self.0.flush()
    }
}

impl<W: Write> View for Items<'_, W> {
    fn chunk(&mut self, chunk: &Chunk) -> io::Result<()> {
        self.write(chunk)
    }

    fn failed(&mut self, error: Error) -> io::Result<Failure> {
        let kind = error.kind();
        self.write(&StreamItem::Error(error))?;
        Ok(match kind {
            ErrorKind::Cancelled => Failure::Interrupted,
            kind => Failure::Told(kind),
        })
    }
}

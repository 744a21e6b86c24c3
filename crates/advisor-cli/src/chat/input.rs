//! The lines that the user enters, and interrupts.

use std::error::Error as StdError;
use std::future::pending;
use std::io::{self, IsTerminal, Write};

use advisor_chain::Error;
use futures::FutureExt;
use futures::future::BoxFuture;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use tokio::signal::ctrl_c;

use crate::failure::Failure;

const PROMPT: &str = "> ";

/// An input at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entered {
    Line(String),
    /// Ctrl-C in an editor. Elsewhere it is a signal, which ends the chat.
    Interrupt,
    /// The end of the input.
    End,
}

/// Standard input, line by line.
#[derive(Debug)]
pub(super) struct Input {
    /// `None` while a blocking thread reads a line.
    source: Option<Source>,
    interactive: bool,
}

#[derive(Debug)]
enum Source {
    /// A terminal on which lines can be edited.
    Editor(Box<DefaultEditor>),
    /// A terminal without line editing. The prompt goes to standard error, because standard output is not a
    /// terminal.
    Terminal,
    /// A file or a pipe.
    Pipe,
}

impl Input {
    pub(super) fn standard() -> Result<Self, Failure> {
        let interactive = io::stdin().is_terminal();
        let source = match (interactive, io::stdout().is_terminal()) {
            (true, true) => Source::Editor(Box::new(DefaultEditor::new().map_err(unreadable)?)),
            (true, false) => Source::Terminal,
            (false, _) => Source::Pipe,
        };
        Ok(Self { source: Some(source), interactive })
    }

    /// Reads lines for a program: without an editor, which would write to standard output.
    pub(super) fn lines() -> Self {
        let source = if io::stdin().is_terminal() { Source::Terminal } else { Source::Pipe };
        Self { source: Some(source), interactive: false }
    }

    /// Checks whether a user at a terminal can continue after an error.
    pub(super) fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// Drops what the user has typed ahead, such as before a question that they have not seen. A pipe keeps its lines. An
    /// editor has dropped what it has read behind its last line.
    pub(super) fn discard(&mut self) -> Result<(), Failure> {
        #[cfg(unix)]
        if matches!(self.source, Some(Source::Editor(_) | Source::Terminal)) {
            nix::sys::termios::tcflush(io::stdin(), nix::sys::termios::FlushArg::TCIFLUSH)
                .map_err(unreadable)?;
        }
        Ok(())
    }

    /// Reads the next line. An editor begins with the text `draft`.
    pub(super) async fn next(
        &mut self,
        draft: &str,
        interrupts: &mut Interrupts,
    ) -> Result<Entered, Failure> {
        let Some(mut source) = self.source.take() else { return Ok(Entered::End) };
        let draft = draft.to_owned();
        // The editor reads Ctrl-C as a key, not as a signal.
        let edited = matches!(source, Source::Editor(_));
        let interrupt = async move { if edited { pending().await } else { interrupts.next().await } };
        let reading = tokio::task::spawn_blocking(move || {
            let line = source.read(&draft);
            (source, line)
        });
        let (source, line) = tokio::select! {
            Ok(()) = interrupt => return Err(Failure::Interrupted),
            read = reading => read.map_err(Error::advisor)?,
        };
        self.source = Some(source);
        Ok(line?)
    }
}

impl Source {
    fn read(&mut self, draft: &str) -> Result<Entered, Error> {
        match self {
            Self::Editor(editor) => match editor.readline_with_initial(PROMPT, (draft, "")) {
                Ok(line) => {
                    // A history entry that cannot be stored must not end the chat.
                    let _ = editor.add_history_entry(line.as_str());
                    Ok(Entered::Line(line))
                }
                Err(ReadlineError::Interrupted) => Ok(Entered::Interrupt),
                Err(ReadlineError::Eof) => Ok(Entered::End),
                Err(error) => Err(unreadable(error)),
            },
            Self::Terminal => {
                let _ = io::stderr().write_all(PROMPT.as_bytes());
                read_line()
            }
            Self::Pipe => read_line(),
        }
    }
}

fn read_line() -> Result<Entered, Error> {
    let mut line = String::new();
    let length = io::stdin().read_line(&mut line).map_err(unreadable)?;
    Ok(if length > 0 { Entered::Line(line) } else { Entered::End })
}

fn unreadable(error: impl StdError + Send + Sync + 'static) -> Error {
    Error::configuration("standard input cannot be read").with_source(error)
}

/// Listens for Ctrl-C, or the corresponding signal, over many turns, so that an interrupt between two turns is not lost.
pub(super) struct Interrupts(BoxFuture<'static, io::Result<()>>);

impl Interrupts {
    pub(super) fn new() -> Self {
        Self(ctrl_c().boxed())
    }

    /// Waits for an interrupt after the last one that was returned or discarded.
    ///
    /// # Cancellation
    /// Dropping the future loses no interrupt.
    pub(super) async fn next(&mut self) -> io::Result<()> {
        let interrupt = (&mut self.0).await;
        self.0 = ctrl_c().boxed();
        interrupt
    }

    /// Discards earlier interrupts.
    pub(super) fn forget(&mut self) {
        self.0 = ctrl_c().boxed();
    }
}

//! One of the program's output streams.

use std::env::var_os;
use std::io::{self, IsTerminal, Write};

/// The form of output on a stream. Decided once, from the stream and the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A terminal with colours.
    Coloured,
    /// A terminal without colours.
    Plain,
    /// A file or a pipe.
    Piped,
}

impl Style {
    /// Returns the style of a stream. `NO_COLOR` (<https://no-color.org>) and `TERM=dumb` forbid colours.
    fn for_stream(stream: &impl IsTerminal) -> Self {
        let forbidden = var_os("NO_COLOR").is_some_and(|set| !set.is_empty())
            || var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        match (stream.is_terminal(), forbidden) {
            (true, false) => Self::Coloured,
            (true, true) => Self::Plain,
            (false, _) => Self::Piped,
        }
    }
}

/// The look of a text where there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Usual,
    Dim,
    Red,
}

/// A stream that knows its style, and whether the last line is still open.
#[derive(Debug)]
pub(crate) struct Output<W> {
    to: W,
    style: Style,
    open: bool,
}

impl<W: Write + IsTerminal> Output<W> {
    /// Creates the output for a standard stream. Reads the environment once.
    pub(crate) fn standard(to: W) -> Self {
        let style = Style::for_stream(&to);
        Self::new(to, style)
    }
}

impl<W: Write> Output<W> {
    pub(crate) fn new(to: W, style: Style) -> Self {
        Self { to, style, open: false }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.style != Style::Piped
    }

    /// Checks whether a line was begun and not ended.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Writes and flushes. Without the flush, a terminal would show an answer line by line.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.to.write_all(text.as_bytes())?;
        self.open = !text.ends_with('\n');
        self.to.flush()
    }

    /// Returns a text with a look. Each text ends its look, so that an interrupted output leaves no trace.
    pub(crate) fn paint(&self, look: Look, text: &str) -> String {
        let number = match look {
            _ if self.style != Style::Coloured || text.is_empty() => return text.to_owned(),
            Look::Usual => return text.to_owned(),
            Look::Dim => 2,
            Look::Red => 31,
        };
        format!("\x1b[{number}m{text}\x1b[0m")
    }

    /// Ends the line that was begun, if one was.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        if self.open { self.write("\n") } else { Ok(()) }
    }
}

//! One of the program's output streams.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

/// The form of output on a stream. Decided once, from the stream and the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A file or a pipe: text alone.
    Piped,
    /// A terminal without colours, or with colours disabled.
    Plain,
    /// A terminal with colours.
    Coloured,
}

impl Style {
    /// Returns the style of a stream, by <https://no-color.org>.
    fn for_stream(stream: &impl IsTerminal, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let unwanted = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let unable = variable("TERM").is_some_and(|value| value == "dumb");
        match stream.is_terminal() {
            false => Self::Piped,
            true if unwanted || unable => Self::Plain,
            true => Self::Coloured,
        }
    }
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
        let style = Style::for_stream(&to, |name| std::env::var_os(name));
        Self::new(to, style)
    }
}

impl<W: Write> Output<W> {
    pub(crate) fn new(to: W, style: Style) -> Self {
        Self { to, style, open: false }
    }

    pub(crate) fn style(&self) -> Style {
        self.style
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

    /// Ends the line that was begun, if one was.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        if self.open { self.write("\n") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// Returns the style of a stream in an environment.
    fn style(stream: &impl IsTerminal, variables: &[(&str, &str)]) -> Style {
        Style::for_stream(stream, |name| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).into())
        })
    }

    #[test]
    fn d12_a_file_is_never_coloured() {
        let file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
        assert_eq!(style(&file, &[("TERM", "xterm")]), Style::Piped);
    }

    #[cfg(unix)]
    #[test]
    fn d12_terminal_is_coloured_unless_environment_forbids_it() {
        // The other end must stay open, or this end is no terminal.
        let terminal = nix::pty::openpty(None, None).unwrap();
        for (variables, expected) in [
            (&[][..], Style::Coloured),
            (&[("TERM", "xterm"), ("NO_COLOR", "")], Style::Coloured),
            (&[("TERM", "dumb")], Style::Plain),
            (&[("TERM", "xterm"), ("NO_COLOR", "1")], Style::Plain),
        ] {
            assert_eq!(style(&terminal.slave, variables), expected, "{variables:?}");
        }
    }
}

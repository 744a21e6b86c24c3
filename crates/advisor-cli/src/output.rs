//! One of the program's output streams.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;

/// The destination of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Terminal,
    /// A file or a pipe.
    Elsewhere,
}

/// Whether a stream is coloured. Without colours, text is shown as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    On,
    Off,
}

/// The form of output on a stream. Decided once, from the stream, the option and the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) place: Place,
    pub(crate) colours: Colours,
}

/// The values of `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorOption {
    /// On a terminal, unless NO_COLOR, CLICOLOR=0 or TERM=dumb is set; elsewhere only with CLICOLOR_FORCE.
    #[default]
    Auto,
    /// Also in files and pipes.
    Always,
    /// Never.
    Never,
}

impl Style {
    /// Returns the style of a stream, by <https://no-color.org> and <https://bixense.com/clicolors>.
    fn for_stream(
        stream: &impl IsTerminal,
        option: ColorOption,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let place = if stream.is_terminal() { Place::Terminal } else { Place::Elsewhere };
        let is = |name: &str, value: &str| variable(name).is_some_and(|set| set == value);
        let is_set = |name: &str| variable(name).is_some_and(|set| !set.is_empty());
        let on = match option {
            ColorOption::Always => true,
            ColorOption::Never => false,
            ColorOption::Auto if is_set("NO_COLOR") => false,
            ColorOption::Auto if is_set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") => true,
            ColorOption::Auto => place == Place::Terminal && !is("TERM", "dumb") && !is("CLICOLOR", "0"),
        };
        Self { place, colours: if on { Colours::On } else { Colours::Off } }
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
    pub(crate) fn standard(to: W, option: ColorOption) -> Self {
        let style = Style::for_stream(&to, option, |name| std::env::var_os(name));
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

    /// Checks whether a stream is coloured with this option in an environment.
    fn coloured(stream: &impl IsTerminal, option: ColorOption, variables: &[(&str, &str)]) -> bool {
        let style = Style::for_stream(stream, option, |name| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).into())
        });
        style.colours == Colours::On
    }

    #[test]
    fn d12_a_file_is_coloured_only_on_request() {
        use ColorOption::{Always, Auto, Never};
        let file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
        for (option, variables, expected) in [
            (Auto, &[("TERM", "xterm")][..], false),
            (Auto, &[("CLICOLOR_FORCE", "1")], true),
            (Auto, &[("CLICOLOR_FORCE", "0")], false),
            (Auto, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
            (Never, &[("CLICOLOR_FORCE", "1")], false),
            (Always, &[("NO_COLOR", "1"), ("TERM", "dumb")], true),
        ] {
            assert_eq!(coloured(&file, option, variables), expected, "{option:?} {variables:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn d12_terminal_is_coloured_unless_environment_forbids_it() {
        // The other end must stay open, or this end is no terminal.
        let terminal = nix::pty::openpty(None, None).unwrap();
        for (variables, expected) in [
            (&[][..], true),
            (&[("TERM", "xterm"), ("NO_COLOR", "")], true),
            (&[("TERM", "dumb")], false),
            (&[("CLICOLOR", "0")], false),
            (&[("TERM", "xterm"), ("NO_COLOR", "1")], false),
        ] {
            assert_eq!(coloured(&terminal.slave, ColorOption::Auto, variables), expected, "{variables:?}");
        }
        assert!(!coloured(&terminal.slave, ColorOption::Never, &[]));
    }
}

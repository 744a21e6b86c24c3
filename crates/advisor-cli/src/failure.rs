//! Failures of a command, and its exit codes.

use std::io::{self, Write};
use std::process::ExitCode;

use advisor_chain::{Error, ErrorKind};

use crate::printable::printable;
use crate::screen;

/// The part of `--help` about exit codes, see [`Failure::tell`].
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    done; the reader of standard output may have closed it before
  1    a turn failed, a recorded stream failed, or a conversation was not found or not imported
  2    wrong usage or configuration, a file that cannot be read, or an output that cannot be written
  130  interrupted";

const FAILED: u8 = 1;
/// The exit code of clap for wrong usage.
const WRONG_USAGE: u8 = 2;
/// The exit code that a shell reports for an interrupted program.
const INTERRUPTED: u8 = 130;

/// The reason why a command ended.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A turn, the work with conversations, or the setup for either failed.
    Chain(Error),
    /// A turn failed with an error of this kind. The printed item has the reason.
    Told(ErrorKind),
    /// The recorded stream failed. The printed outcome has the reason.
    Recording,
    /// The file cannot be read.
    Unreadable {
        /// The file, as the user named it.
        file: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Standard output cannot be written.
    Output(io::Error),
    /// The user interrupted the program.
    Interrupted,
}

impl Failure {
    /// Reports the failure to the user, if there is a message, and returns the exit code.
    pub(crate) fn tell(&self) -> ExitCode {
        if let Some(text) = self.text() {
            // If this cannot be written either, the exit code must suffice.
            let _ = writeln!(io::stderr(), "error: {text}");
        }
        self.code().into()
    }

    fn text(&self) -> Option<String> {
        match self {
            Self::Chain(error) => Some(screen::chain_of(error)),
            Self::Unreadable { file, source } => Some(format!("{}: {source}", printable(file))),
            Self::Output(error) if !is_closed(error) => {
                Some(format!("standard output cannot be written: {error}"))
            }
            Self::Told(_) | Self::Recording | Self::Output(_) | Self::Interrupted => None,
        }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Chain(error) if error.kind() == ErrorKind::Configuration => WRONG_USAGE,
            Self::Told(ErrorKind::Configuration) => WRONG_USAGE,
            Self::Chain(_) | Self::Told(_) | Self::Recording => FAILED,
            // A reader that closes the pipe, as `head` does, has read enough.
            Self::Output(error) if is_closed(error) => 0,
            Self::Unreadable { .. } | Self::Output(_) => WRONG_USAGE,
            Self::Interrupted => INTERRUPTED,
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Chain(error)
    }
}

/// Other I/O errors are wrapped where they occur, so these are errors of standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

//! How a command ends without its work done, and what the shell is told.

use std::io::{self, Write};
use std::process::ExitCode;

use advisor_chain::{Error, ErrorKind};

use crate::screen;

/// What `--help` says about [`Failure::tell`].
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    done; whoever reads standard output may have closed it before
  1    a turn failed, a recorded stream failed, or a conversation was not found or not imported
  2    wrong usage or configuration, a file that cannot be read, or an output that cannot be written
  130  interrupted";

const FAILED: u8 = 1;
/// What clap exits with for wrong usage.
const WRONG_USAGE: u8 = 2;
/// What a shell gives for a program that an interrupt ended.
const INTERRUPTED: u8 = 130;

/// Why a command ended.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A turn or work with conversations, or what it takes to begin.
    Chain(Error),
    /// The recorded stream failed. The printed outcome says how.
    Recording,
    /// The file cannot be read.
    Unreadable {
        /// The file as it was named.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// Standard output cannot be written.
    Output(io::Error),
    /// The user interrupted the program.
    Interrupted,
}

impl Failure {
    /// Tells the user, if there is something to tell, and gives the exit code.
    pub(crate) fn tell(&self) -> ExitCode {
        if let Some(text) = self.text() {
            // If this cannot be written either, the exit code has to do.
            let _ = writeln!(io::stderr(), "error: {text}");
        }
        self.code().into()
    }

    fn text(&self) -> Option<String> {
        match self {
            Self::Chain(error) => Some(screen::chain_of(error)),
            Self::Unreadable { file, source } => Some(format!("{file}: {source}")),
            Self::Output(error) if !is_closed(error) => {
                Some(format!("standard output cannot be written: {error}"))
            }
            Self::Recording | Self::Output(_) | Self::Interrupted => None,
        }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Chain(error) if error.kind() == ErrorKind::Configuration => WRONG_USAGE,
            Self::Chain(_) | Self::Recording => FAILED,
            // Who closed the pipe, as `head` does, has read enough.
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

/// Every other error of the system is wrapped where it happens; what is left is the output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

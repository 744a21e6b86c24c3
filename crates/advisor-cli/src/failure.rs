//! How a command ends without its work done, and what the shell is told.

use std::io::{self, Write};
use std::process::ExitCode;

use advisor_chain::Error;

use crate::screen;

/// What clap exits with for bad usage; a file that cannot be read or written to is bad usage, too.
const BAD_USAGE: u8 = 2;

/// Why a command ended.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A turn, or what it takes to begin one.
    Chain(Error),
    /// The recorded stream failed. The printed outcome says how.
    Recording,
    /// The recording cannot be read.
    Unreadable {
        /// The file as it was named.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// Standard output cannot be written.
    Output(io::Error),
}

impl Failure {
    /// Tells the user, if there is something to tell, and gives the exit code.
    pub(crate) fn tell(&self) -> ExitCode {
        match self {
            Self::Chain(error) => {
                say(&screen::chain_of(error));
                ExitCode::FAILURE
            }
            Self::Recording => ExitCode::FAILURE,
            Self::Unreadable { file, source } => {
                say(&format!("{file}: {source}"));
                ExitCode::from(BAD_USAGE)
            }
            // Who closed the pipe, as `head` does, has read enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Self::Output(error) => {
                say(&format!("standard output cannot be written: {error}"));
                ExitCode::from(BAD_USAGE)
            }
        }
    }
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

fn say(what: &str) {
    // If this cannot be written either, the exit code has to do.
    let _ = writeln!(io::stderr(), "error: {what}");
}

//! The journal of a program, in a file.

use std::fs::File;
use std::path::{Path, PathBuf};

use advisor_chain::{Chunk, Error, TurnId};
use advisor_testkit::Journal;

use crate::failure::Failure;
use crate::printable::printable;

/// A journal that is written to its file after each turn. `advisor inspect` shows it.
///
/// It has the names of tools and their arguments, and no texts of questions, answers or results.
#[derive(Debug, Default)]
pub(crate) struct JournalFile {
    journal: Journal,
    /// `None` for a journal that nobody asked for.
    file: Option<PathBuf>,
}

impl JournalFile {
    /// Creates the file.
    ///
    /// # Errors
    /// If the file exists already or cannot be written.
    pub(crate) fn create(file: &Path) -> Result<Self, Failure> {
        File::create_new(file).map_err(|error| unwritten(file, error))?;
        let journal = Self { journal: Journal::timed(), file: Some(file.to_owned()) };
        journal.save()?;
        Ok(journal)
    }

    /// Returns the journal, for the parts of a chain that record in it.
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    pub(crate) fn begin(&self, turn: &TurnId) {
        self.journal.record(format!("turn.start {turn}"));
    }

    pub(crate) fn item(&self, item: &Result<Chunk, Error>) {
        match item {
            Ok(chunk) => self.journal.record_chunk(chunk),
            Err(error) => self.journal.record(format!("turn.failed {}", error.kind().as_str())),
        }
    }

    /// Writes the journal so far.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Ok(()) };
        let json = serde_json::to_vec(&self.journal).map_err(Into::into);
        json.and_then(|json| std::fs::write(file, json)).map_err(|error| unwritten(file, error))
    }
}

fn unwritten(file: &Path, error: std::io::Error) -> Failure {
    let name = printable(&file.display().to_string());
    Error::configuration(format!("the journal {name} cannot be written")).with_source(error).into()
}

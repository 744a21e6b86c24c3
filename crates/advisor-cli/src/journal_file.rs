//! The journal of a program, in a file.

use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use advisor_chain::{Chunk, Error, TurnId};
use advisor_testkit::Journal;

use crate::failure::Failure;
use crate::printable::printable;
use crate::private_file::create_private;

/// A journal that is written to its file after each turn. `advisor inspect` shows it.
///
/// It has the names of tools and their arguments, and no texts of questions, answers or results. On Unix, only the
/// owner can read it.
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
        create_private(file).map_err(|error| unwritten(file, error))?;
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

    /// Writes the journal so far. A process that ends while it writes leaves the journal of the turn before.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Ok(()) };
        let json = serde_json::to_vec(&self.journal).map_err(Into::into);
        json.and_then(|json| replace(file, &json)).map_err(|error| unwritten(file, error))
    }
}

/// Replaces the content of a file. At each moment the file has the old content or the new one.
fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    let beside = beside(file);
    // An earlier process with the same number may have ended while it wrote.
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut new = create_private(&beside)?;
    let written = new.write_all(content).and_then(|()| new.sync_all());
    drop(new);
    let replaced = written.and_then(|()| std::fs::rename(&beside, file));
    if replaced.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    replaced
}

/// Returns the path at which the next state of a file is written.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    name.into()
}

fn unwritten(file: &Path, error: io::Error) -> Failure {
    let name = printable(&file.display().to_string());
    Error::configuration(format!("the journal {name} cannot be written")).with_source(error).into()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Creates a journal in a file that did not exist.
    fn journal_in(name: &str) -> (JournalFile, PathBuf) {
        let file = std::env::temp_dir().join(format!("{name}-{}.journal", std::process::id()));
        let _ = std::fs::remove_file(&file);
        (JournalFile::create(&file).unwrap(), file)
    }

    fn labels(json: &str) -> Vec<String> {
        serde_json::from_str::<Journal>(json).unwrap().labels()
    }

    #[test]
    fn arguments_of_tools_are_for_the_owner_alone() {
        let (journal, file) = journal_in("owner");
        let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        journal.save().unwrap();
        assert_eq!(mode(), 0o600);
        std::fs::remove_file(&file).unwrap();
    }

    /// A process that is killed while it saves leaves the journal of the turn before.
    #[test]
    fn saving_does_not_touch_the_earlier_journal() {
        let (journal, file) = journal_in("whole");
        journal.journal().record("one");
        journal.save().unwrap();
        let mut earlier = File::open(&file).unwrap();
        journal.journal().record("two");
        journal.save().unwrap();
        let mut text = String::new();
        earlier.read_to_string(&mut text).unwrap();
        assert_eq!(labels(&text), ["one"]);
        assert_eq!(labels(&std::fs::read_to_string(&file).unwrap()), ["one", "two"]);
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn rest_of_a_broken_save_is_replaced() {
        let (journal, file) = journal_in("rest");
        std::fs::write(beside(&file), "half a jour").unwrap();
        journal.save().unwrap();
        assert!(!beside(&file).exists());
        assert_eq!(labels(&std::fs::read_to_string(&file).unwrap()), [""; 0]);
        std::fs::remove_file(&file).unwrap();
    }
}

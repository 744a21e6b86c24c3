//! Notices that a file of an open database was deleted or replaced, so that nothing is acknowledged which the next
//! process does not find.

use std::fs::{Metadata, metadata};
use std::io;
use std::path::{Path, PathBuf};

/// A file of the store was deleted or replaced while the store was open: the database, or the `-wal` or `-shm` file
/// beside it.
///
/// It is the source of the errors of such a store's writes, which [`SqliteStore`](crate::SqliteStore) refuses. Its
/// reads still show what it has.
#[derive(Debug, thiserror::Error)]
#[error(
    "a file of the store was deleted or replaced while it was open; export what it still shows, then open the store \
     again"
)]
#[non_exhaustive]
pub struct FileReplaced;

/// The files of an open database: each at its path, with its identity.
#[derive(Debug)]
pub(crate) struct OpenFiles(Vec<(PathBuf, Identity)>);

/// What tells one file from another. Where the system offers none, a file is only known to exist.
type Identity = Option<(u64, u64)>;

impl OpenFiles {
    /// Notes the files of the database at `path`. It must be open: then SQLite keeps the two beside it.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        // SQLite puts the other files beside the one that a link leads to.
        let database = path.canonicalize()?;
        let beside = ["-wal", "-shm"].map(|ending| {
            let mut name = database.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        });
        let mut files = vec![(path.to_path_buf(), identity(&metadata(path)?))];
        for path in beside {
            let found = identity(&metadata(&path)?);
            files.push((path, found));
        }
        Ok(Self(files))
    }

    /// Checks that each file is still at its path. Costs three look-ups in the file system.
    pub(crate) fn check(&self) -> Result<(), FileReplaced> {
        let stands = |(path, noted): &(PathBuf, Identity)| {
            metadata(path).is_ok_and(|found| identity(&found) == *noted)
        };
        if self.0.iter().all(stands) { Ok(()) } else { Err(FileReplaced) }
    }
}

/// While a file is open, no other one gets its number.
#[cfg(unix)]
fn identity(found: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Some((found.dev(), found.ino()))
}

/// On Windows, an open database can be neither deleted nor replaced.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> Identity {
    None
}

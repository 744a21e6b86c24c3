//! Files of the program that hold content.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a file that, on Unix, only its owner can read and write.
///
/// # Errors
/// If the file exists already or cannot be created.
pub(crate) fn create_private(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}

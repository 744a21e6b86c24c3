//! The location of the recordings.

use std::env;
use std::path::{Path, PathBuf};

/// The variable that names the directory.
const DIRECTORY: &str = "ADVISOR_RECORDINGS";
/// The variable that makes their absence a failure if it is `1`.
pub(super) const REQUIRE: &str = "ADVISOR_REQUIRE_RECORDINGS";
/// The message if there are none.
pub(super) const ABSENT: &str =
    "no recordings (no shared/recordings beside or above the package, ADVISOR_RECORDINGS is not set)";

/// Returns the directory of the recordings on this machine. Fails only if the variable names a directory
/// without them.
pub(super) fn directory() -> Result<Option<PathBuf>, String> {
    let named = env::var_os(DIRECTORY).filter(|name| !name.is_empty());
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let starts: Vec<PathBuf> = package.into_iter().chain(env::current_dir()).collect();
    choose(named.map(PathBuf::from), &starts)
}

/// Checks whether absence is a failure.
pub(super) fn required() -> bool {
    env::var_os(REQUIRE).is_some_and(|value| value == "1")
}

fn choose(named: Option<PathBuf>, starts: &[PathBuf]) -> Result<Option<PathBuf>, String> {
    match named {
        Some(directory) if holds_recordings(&directory) => Ok(Some(directory)),
        Some(directory) => Err(format!("{DIRECTORY} names {}, which has no index.json", directory.display())),
        None => Ok(starts
            .iter()
            .flat_map(|start| start.ancestors())
            .map(|place| place.join("shared").join("recordings"))
            .find(|place| holds_recordings(place))),
    }
}

fn holds_recordings(directory: &Path) -> bool {
    directory.join("index.json").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixtures() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
    }

    #[test]
    fn a_named_directory_wins_and_must_be_one() {
        let recordings = fixtures().join("shared/recordings");
        assert_eq!(choose(Some(recordings.clone()), &[]), Ok(Some(recordings)));
        let problem = choose(Some(fixtures()), &[fixtures()]).unwrap_err();
        assert!(problem.starts_with("ADVISOR_RECORDINGS names "), "{problem}");
    }

    #[test]
    fn without_a_name_the_nearest_above_is_taken() {
        let deep = fixtures().join("some/package");
        assert_eq!(
            choose(None, &[PathBuf::from("/nowhere"), deep]),
            Ok(Some(fixtures().join("shared/recordings")))
        );
        assert_eq!(choose(None, &[PathBuf::from("/nowhere/at/all")]), Ok(None));
        assert_eq!(choose(None, &[]), Ok(None));
    }
}

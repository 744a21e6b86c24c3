//! `cargo`: the command that builds and runs other packages, without variables that cause rebuilds.

use std::process::Command;

/// Returns the cargo command that runs this program, without the variables about this package, which would
/// cause rebuilds.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    for (name, _) in std::env::vars_os() {
        let named = name.to_string_lossy();
        if named.starts_with("CARGO_PKG_") || named.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

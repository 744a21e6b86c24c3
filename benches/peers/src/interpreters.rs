//! Clients in Python and Node: installed on demand, below the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The words that start a client.
pub(crate) type Words = Vec<PathBuf>;

const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/interpreters");
const INSTALLED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/interpreters");

/// Installs OpenAI's library for Python into a separate environment.
pub(crate) fn python() -> Words {
    let (environment, client) = (Path::new(INSTALLED).join("python"), Path::new(CLIENTS).join("python"));
    run(Command::new("python3").args(["-m", "venv"]).arg(&environment));
    let install = ["-m", "pip", "install", "--quiet", "--requirement"];
    let python = environment.join("bin/python");
    run(Command::new(&python).args(install).arg(client.join("requirements.txt")));
    vec![python, client.join("stream.py")]
}

/// Installs OpenAI's library for Node beside a copy of its client, which is where Node looks for it.
pub(crate) fn node() -> Words {
    let (folder, client) = (Path::new(INSTALLED).join("node"), Path::new(CLIENTS).join("node"));
    std::fs::create_dir_all(&folder).expect("a folder below the target directory");
    for file in ["package.json", "stream.mjs"] {
        std::fs::copy(client.join(file), folder.join(file)).expect("a file of this package");
    }
    run(Command::new("npm").args(["install", "--silent", "--prefix"]).arg(&folder));
    vec!["node".into(), folder.join("stream.mjs")]
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    assert!(status.success(), "{command:?} failed");
}

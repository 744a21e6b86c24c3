//! The clients and their programs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::cargo::cargo;
use crate::interpreters::{self, Words};

/// A client under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    /// A socket, and a search for the content.
    Floor,
    /// reqwest, lines cut by hand, `serde_json`.
    Reqwest,
    Ours,
    AsyncOpenai,
    Genai,
    RigModel,
    RigAgent,
    /// OpenAI's own libraries.
    Python,
    Node,
}

impl Client {
    /// The clients in Rust.
    pub(crate) const ALL: [Self; 7] = [
        Self::Floor,
        Self::Reqwest,
        Self::Ours,
        Self::AsyncOpenai,
        Self::Genai,
        Self::RigModel,
        Self::RigAgent,
    ];

    /// The clients that can run tools.
    pub(crate) const WITH_TOOLS: [Self; 6] =
        [Self::Floor, Self::Reqwest, Self::Ours, Self::AsyncOpenai, Self::Genai, Self::RigAgent];

    /// As the table calls it, which is also its program's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Reqwest => "reqwest",
            Self::Ours => "ours",
            Self::AsyncOpenai => "async-openai",
            Self::Genai => "genai",
            Self::RigModel => "rig-model",
            Self::RigAgent => "rig-agent",
            Self::Python => "Python",
            Self::Node => "Node",
        }
    }
}

const PACKAGES: [&str; 5] = ["peer-by-hand", "peer-ours", "peer-async-openai", "peer-genai", "peer-rig"];

/// The words that start each client.
pub(crate) struct Programs(HashMap<String, Words>);

impl Programs {
    /// Builds each package alone, so that none has features of a library that another asked for.
    pub(crate) fn build() -> Self {
        Self(PACKAGES.iter().flat_map(|package| build(package)).collect())
    }

    /// Installs the clients that are not in Rust.
    pub(crate) fn install_interpreters(&mut self) {
        for (client, words) in
            [(Client::Python, interpreters::python()), (Client::Node, interpreters::node())]
        {
            self.0.insert(client.name().to_owned(), words);
        }
    }

    pub(crate) fn of(&self, client: Client) -> &[PathBuf] {
        &self.0[client.name()]
    }
}

fn build(package: &str) -> Vec<(String, Words)> {
    eprintln!("--- building {package}");
    let output = cargo()
        .args(["build", "--release", "--locked", "--message-format=json-render-diagnostics"])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), "--package", package])
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "{package} could not be built");
    let messages = String::from_utf8_lossy(&output.stdout);
    messages.lines().filter_map(|line| program(&serde_json::from_str(line).ok()?)).collect()
}

fn program(message: &Value) -> Option<(String, Words)> {
    let name = message["target"]["name"].as_str()?;
    Some((name.to_owned(), vec![message["executable"].as_str()?.into()]))
}

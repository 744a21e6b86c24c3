//! The folder whose files the model may read, and the tool that reads them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use advisor_chain::tools::{ToolError, ToolInvocation};
use advisor_chain::{Error, FnTool, Result, ToolDefinition};
use serde_json::{Value, json};

/// The maximum size of a file, in bytes.
const MOST: u64 = 256 << 10;

/// The end of every refusal.
const ALLOWED: &str = "Only text files of at most 256 KiB inside the shared folder can be read, by their path relative \
                       to it; names that begin with a dot are refused, as are files with several names";

/// A folder that the user shares with the model.
#[derive(Debug)]
pub(super) struct SharedFolder {
    /// The canonical path, without links, which is a prefix of every readable file's canonical path.
    root: PathBuf,
}

impl SharedFolder {
    /// Opens the folder and resolves its links.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_chain::ErrorKind::Configuration) if it is no folder.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let refused = |what: &str| Error::configuration(format!("{}: {what}", folder.display()));
        let root = folder
            .canonicalize()
            .map_err(|error| refused("the folder cannot be shared").with_source(error))?;
        if root.is_dir() { Ok(Self { root }) } else { Err(refused("this is no folder")) }
    }

    /// Returns the tool that reads a file.
    pub(super) fn into_tool(self) -> FnTool {
        let definition = ToolDefinition::new(
            "read_file",
            "Reads a text file in the folder that the user shares, or in a folder inside it.",
            json!({
                "type": "object",
                "properties": {"path": {"type": "string", "description": "The path, relative to that folder."}},
                "required": ["path"],
            }),
        );
        FnTool::blocking(definition, 2, move |invocation: ToolInvocation| {
            self.read(invocation.arguments.get("path").and_then(Value::as_str).unwrap_or_default())
        })
    }

    /// Reads a text file inside the folder.
    ///
    /// # Errors
    /// A text for the model, with the rule for paths but without the location of the folder.
    fn read(&self, path: &str) -> Result<String, ToolError> {
        self.find(Path::new(path))
            .and_then(|file| text_of(&file))
            .map_err(|refusal| ToolError::new(format!("{refusal}. {ALLOWED}")))
    }

    /// Returns the file's canonical path. The same rule applies to the requested path and to the target of its
    /// links. A user who can replace a link before the file is read can write in the folder, and needs no model
    /// to read there.
    fn find(&self, path: &Path) -> Result<PathBuf, String> {
        if !is_open(path) {
            return Err("this path is not allowed".to_owned());
        }
        let file = self.root.join(path).canonicalize().map_err(|error| unreadable(&error))?;
        match file.strip_prefix(&self.root) {
            Ok(inside) if is_open(inside) => Ok(file),
            _ => Err("this path leads to where reading is not allowed".to_owned()),
        }
    }
}

/// Checks whether a relative path goes only downwards, and through no hidden name.
fn is_open(path: &Path) -> bool {
    path.components().all(|component| match component {
        Component::CurDir => true,
        Component::Normal(name) => !name.as_encoded_bytes().starts_with(b"."),
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
    })
}

fn text_of(file: &Path) -> Result<String, String> {
    // Checked before opening: opening a named pipe blocks until there is a writer.
    if !file.metadata().map_err(|error| unreadable(&error))?.is_file() {
        return Err("this is no file".to_owned());
    }
    let opened = File::open(file).map_err(|error| unreadable(&error))?;
    if !has_one_name(&opened).map_err(|error| unreadable(&error))? {
        return Err("this file has further names (hard links), which may be hidden".to_owned());
    }
    let mut bytes = Vec::new();
    let read = opened.take(MOST + 1).read_to_end(&mut bytes);
    match read.map_err(|error| unreadable(&error))? as u64 {
        0..=MOST => String::from_utf8(bytes).map_err(|_| "this file is not UTF-8 text".to_owned()),
        _ => Err("this file is too large".to_owned()),
    }
}

/// Checks whether no other path leads to the file: it may be hidden, or outside the folder.
#[cfg(unix)]
fn has_one_name(file: &File) -> io::Result<bool> {
    file.metadata().map(|known| std::os::unix::fs::MetadataExt::nlink(&known) <= 1)
}

#[cfg(not(unix))]
fn has_one_name(_: &File) -> io::Result<bool> {
    Ok(true)
}

fn unreadable(error: &io::Error) -> String {
    format!("the file cannot be read: {}", error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let shared = SharedFolder::open(folder.path()).unwrap();
        for (length, fits) in [(0, true), (MOST, true), (MOST + 1, false)] {
            std::fs::write(folder.path().join("a"), "x".repeat(length.try_into().unwrap())).unwrap();
            assert_eq!(shared.read("a").is_ok(), fits, "{length}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_named_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let shared = SharedFolder::open(folder.path()).unwrap();
        let (told, tells) = std::sync::mpsc::channel();
        std::thread::spawn(move || told.send(shared.read("pipe")));
        let refusal = tells.recv_timeout(std::time::Duration::from_secs(30)).unwrap().unwrap_err();
        assert!(refusal.text.contains("this is no file"), "{refusal:?}");
    }

    /// A link of this kind has no target whose name could be checked.
    #[cfg(unix)]
    #[test]
    fn hidden_file_is_not_read_by_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let shared = SharedFolder::open(folder.path()).unwrap();
        std::fs::write(folder.path().join(".env"), "KEY=canary").unwrap();
        std::fs::hard_link(folder.path().join(".env"), folder.path().join("a")).unwrap();
        let refused = shared.read("a").unwrap_err().text.to_owned();
        assert!(refused.contains("further names") && !refused.contains("canary"), "{refused}");
        std::fs::remove_file(folder.path().join(".env")).unwrap();
        assert!(shared.read("a").is_ok());
    }
}

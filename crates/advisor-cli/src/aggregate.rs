//! `advisor aggregate`: prints the result of a recorded stream.

use std::io::{ErrorKind, Write};
use std::path::Path;

use advisor_chain::openai::recording;

use crate::failure::Failure;

pub(crate) fn run(file: &Path, choices: u32, out: &mut impl Write) -> Result<(), Failure> {
    let body = std::fs::read(file)
        .map_err(|source| Failure::Unreadable { file: file.display().to_string(), source })?;
    let json_lines = file.extension().is_some_and(|extension| extension == "jsonl");
    let body = if json_lines { recording::frame_json_lines(&body) } else { body };
    let outcome = recording::aggregate([body], choices);
    match writeln!(out, "{outcome}").and_then(|()| out.flush()) {
        // The exit code depends on the recording, even if the reader has closed the pipe.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(Failure::Output(error)),
        _ => {}
    }
    match outcome.get("error") {
        None | Some(serde_json::Value::Null) => Ok(()),
        Some(_) => Err(Failure::Recording),
    }
}

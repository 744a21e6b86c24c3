//! `advisor aggregate`: what a recorded stream amounts to.

use std::io::{ErrorKind, Write};
use std::path::Path;

use advisor_chain::openai::aggregate_recording;

use crate::failure::Failure;

pub(crate) fn run(file: &Path, choices: u32, out: &mut impl Write) -> Result<(), Failure> {
    let body = std::fs::read(file)
        .map_err(|source| Failure::Unreadable { file: file.display().to_string(), source })?;
    let json_lines = file.extension().is_some_and(|extension| extension == "jsonl");
    let body = if json_lines { framed(&body) } else { body };
    let outcome = aggregate_recording([body], choices);
    match writeln!(out, "{outcome}").and_then(|()| out.flush()) {
        // The exit code tells about the recording, whether or not somebody reads the rest.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(Failure::Output(error)),
        _ => {}
    }
    match outcome.get("error") {
        None | Some(serde_json::Value::Null) => Ok(()),
        Some(_) => Err(Failure::Recording),
    }
}

/// Payloads, one a line, as server-sent events with the end marker. They stay bytes: whether they are UTF-8 is for the
/// decoder to say, as for any other recording.
fn framed(lines: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(lines.len());
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        body.extend([b"data: ", line, b"\n\n"].concat());
    }
    body.extend(b"data: [DONE]\n\n");
    body
}

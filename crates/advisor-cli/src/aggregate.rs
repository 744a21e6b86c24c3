//! `advisor aggregate`: what a recorded stream amounts to.

use std::path::Path;
use std::process::ExitCode;

use advisor_chain::openai::{aggregate_recording, frame_json_lines};

/// What clap exits with for bad usage; a file that cannot be read is bad usage, too.
const BAD_USAGE: u8 = 2;

pub(crate) fn run(file: &Path, choices: u32) -> ExitCode {
    let body = match std::fs::read(file) {
        Ok(body) => body,
        Err(error) => {
            eprintln!("error: {}: {error}", file.display());
            return ExitCode::from(BAD_USAGE);
        }
    };
    let body = if file.extension().is_some_and(|extension| extension == "jsonl") {
        match String::from_utf8(body) {
            Ok(lines) => frame_json_lines(&lines).into_bytes(),
            Err(error) => {
                eprintln!("error: {}: not UTF-8: {error}", file.display());
                return ExitCode::from(BAD_USAGE);
            }
        }
    } else {
        body
    };
    let outcome = aggregate_recording([body], choices);
    println!("{outcome}");
    if outcome.get("error").is_none_or(serde_json::Value::is_null) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

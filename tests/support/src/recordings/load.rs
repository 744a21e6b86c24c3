//! Loads a directory of recordings.

use super::{Recording, Recordings};
use serde_json::Value;
use std::fs;
use std::io;
use std::path::Path;

/// Providers whose `.jsonl` is the wire format itself, or frames of a binary one, and never was server-sent
/// events.
const NOT_SSE: [&str; 2] = ["ollama", "bedrock-converse"];

/// Loads the recordings of `api` from a directory.
///
/// # Errors
///
/// A file in the index cannot be read, or its content is invalid; the error names it.
pub fn load(directory: &Path, api: &str) -> io::Result<Recordings> {
    let index = read_json(&directory.join("index.json"))?;
    let files = index.get("files").and_then(Value::as_array);
    let files = files.ok_or_else(|| invalid("index.json", "has no list `files`"))?;
    let recordings: io::Result<Vec<Recording>> = files
        .iter()
        .filter(|entry| entry.get("api").and_then(Value::as_str) == Some(api))
        .map(|entry| load_one(directory, api, entry))
        .collect();
    Ok(Recordings { directory: Some(directory.to_owned()), recordings: recordings? })
}

fn load_one(directory: &Path, api: &str, entry: &Value) -> io::Result<Recording> {
    let word = |key: &str| {
        let value = entry.get(key).and_then(Value::as_str);
        value.ok_or_else(|| invalid("index.json", &format!("has an entry without `{key}`")))
    };
    let file = word("file")?;
    let provider = word("provider")?;
    let (name, extension) = file.rsplit_once('.').unwrap_or((file, ""));
    let recorded = read(&directory.join(file))?;
    let body = if extension == "jsonl" && !NOT_SSE.contains(&provider) {
        frame(&recorded, api, file)?
    } else {
        recorded
    };
    let transport = read_json_if_present(&directory.join(format!("{name}.transport.json")))?;
    Ok(Recording {
        name: name.to_owned(),
        api: api.to_owned(),
        provider: provider.to_owned(),
        body,
        expected: read_json(&directory.join(format!("{name}.expected.json")))?,
        chunk_ends: chunk_ends(&transport),
    })
}

/// Frames one payload per line as server-sent events, as the provider would have sent them.
fn frame(lines: &[u8], api: &str, file: &str) -> io::Result<Vec<u8>> {
    let mut body = Vec::with_capacity(lines.len() * 2);
    let lines = lines.split(|&byte| byte == b'\n');
    for line in lines.filter(|line| !line.trim_ascii().is_empty()) {
        let payload: Value = serde_json::from_slice(line)
            .map_err(|error| invalid(file, &format!("has a line that is no JSON: {error}")))?;
        if let Some(name) = payload.get("type").and_then(Value::as_str) {
            body.extend_from_slice(format!("event: {name}\n").as_bytes());
        }
        body.extend_from_slice(b"data: ");
        body.extend_from_slice(line);
        body.extend_from_slice(b"\n\n");
    }
    if api == "openai-chat" {
        body.extend_from_slice(b"data: [DONE]\n\n");
    }
    Ok(body)
}

fn chunk_ends(transport: &Value) -> Vec<usize> {
    let ends = transport.get("chunk_ends").and_then(Value::as_array);
    let ends = ends.into_iter().flatten().filter_map(Value::as_u64);
    ends.filter_map(|end| usize::try_from(end).ok()).collect()
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn read_json(path: &Path) -> io::Result<Value> {
    serde_json::from_slice(&read(path)?)
        .map_err(|error| invalid(&path.display().to_string(), &format!("is no JSON: {error}")))
}

/// Returns the JSON of a file; `null` if the file does not exist.
fn read_json_if_present(path: &Path) -> io::Result<Value> {
    if path.exists() { read_json(path) } else { Ok(Value::Null) }
}

fn invalid(file: &str, problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{file} {problem}"))
}

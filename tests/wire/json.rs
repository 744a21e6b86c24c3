//! The examples of `docs/json.md` are read and written again, and each type has one.

use std::fs;
use std::path::Path;

use advisor_chain::chain::StreamItem;
use advisor_chain::messages::JSON_VERSION;
use advisor_testkit::StreamValidator;
use advisor_tests::prelude::*;

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/json.md")).unwrap()
}

/// The lines of all examples, by example.
fn examples(page: &str) -> Vec<Vec<&str>> {
    let fenced = page.split("```json\n").skip(1);
    fenced.map(|rest| rest.split("\n```").next().unwrap().lines().collect()).collect()
}

fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// What an item is: its type, then that of its delta or event, or the kind of its error.
fn type_of(item: &StreamItem) -> String {
    match item {
        StreamItem::Begin { version } => {
            assert_eq!(*version, JSON_VERSION);
            "begin".into()
        }
        StreamItem::Error(_) => "error".into(),
        StreamItem::Chunk(chunk) => type_of_chunk(chunk).into(),
        other => panic!("not of this version: {other:?}"),
    }
}

fn type_of_chunk(chunk: &Chunk) -> &'static str {
    match chunk {
        Chunk::Opened { .. } => "opened",
        Chunk::Delta { delta, .. } => match delta {
            BlockDelta::Text(_) => "delta text",
            BlockDelta::Reasoning(_) => "delta reasoning",
            BlockDelta::Refusal(_) => "delta refusal",
            BlockDelta::Arguments(_) => "delta arguments",
            BlockDelta::Media(_) => "delta media",
            BlockDelta::Citation(_) => "delta citation",
            BlockDelta::Opaque(_) => "delta opaque",
            other => panic!("add an example of {other:?}"),
        },
        Chunk::Closed { .. } => "closed",
        Chunk::Tool(event) => match &event.kind {
            ToolEventKind::Started { .. } => "tool started",
            ToolEventKind::Progress { .. } => "tool progress",
            ToolEventKind::Finished { .. } => "tool finished",
            ToolEventKind::NotStarted { .. } => "tool not_started",
            other => panic!("add an example of {other:?}"),
        },
        Chunk::RoundCompleted(_) => "round_completed",
        Chunk::Usage { .. } => "usage",
        Chunk::AttemptRestarted { .. } => "attempt_restarted",
        Chunk::Completed(_) => "completed",
        other => panic!("add an example of {other:?}"),
    }
}

#[test]
fn every_example_is_read_and_written_again() {
    let page = page();
    let (mut types, mut journals) = (BTreeSet::new(), 0);
    for line in examples(&page).concat() {
        let json = value(line);
        if json.get("events").is_some() {
            assert_eq!((&json["version"], json["events"].is_array()), (&json!(JSON_VERSION), true));
            journals += 1;
            continue;
        }
        let item = StreamItem::from_json(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(serde_json::to_string(&item).unwrap(), line, "also in its order of fields");
        types.insert(type_of(&item));
    }
    let documented: Vec<_> = types.iter().map(String::as_str).collect();
    let all = [
        "attempt_restarted", "begin", "closed", "completed", "delta arguments", "delta citation",
        "delta media", "delta opaque", "delta reasoning", "delta refusal", "delta text", "error", "opened",
        "round_completed", "tool finished", "tool not_started", "tool progress", "tool started", "usage",
    ];
    assert_eq!((documented, journals), (all.to_vec(), 1));
}

#[test]
fn first_example_is_a_whole_stream() {
    let page = page();
    let example = examples(&page).remove(0);
    assert!(matches!(StreamItem::from_json(example[0]), Ok(StreamItem::Begin { version: JSON_VERSION })));
    let chunk = |line: &&str| match StreamItem::from_json(line).unwrap() {
        StreamItem::Chunk(chunk) => chunk,
        other => panic!("{other:?}"),
    };
    let chunks: Vec<Chunk> = example.iter().skip(1).map(chunk).collect();
    let (mut validator, mut fold) = (StreamValidator::new(), ChunkFold::default());
    for chunk in &chunks {
        validator.push(chunk).unwrap();
        fold.push(chunk);
    }
    validator.finish().unwrap();
    assert_eq!(fold.text(1), chunks.last().unwrap().completed().unwrap().text());
}

/// The words of the page are those of the code.
#[test]
fn page_names_the_reasons_and_the_version() {
    let page = page();
    assert!(page.contains(&format!("The version is `JSON_VERSION`, now {JSON_VERSION}.")));
    let event = |reason: &str| {
        let result = r#"{"call_id":"c","name":"f","parts":[],"is_error":true}"#;
        let event = format!(r#"{{"type":"not_started","reason":"{reason}","result":{result}}}"#);
        format!(r#"{{"type":"tool","block":"1.0","call_id":"c","name":"f","event":{event}}}"#)
    };
    let line = page.lines().find(|line| line.starts_with("`reason` is")).unwrap();
    for reason in line.split('`').skip(3).step_by(2) {
        let json = event(reason);
        let item = StreamItem::from_json(&json).unwrap();
        assert_eq!(serde_json::to_string(&item).unwrap(), json);
    }
    let later = StreamItem::from_json(r#"{"type":"begin","version":2}"#).unwrap_err();
    assert_eq!(later.kind(), ErrorKind::Protocol { position: None });
}

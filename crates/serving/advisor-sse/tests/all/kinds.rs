//! The kinds of content in each protocol, as the table of the README has them.

use std::collections::{BTreeMap, BTreeSet};

use advisor_core::{Citation, Delta, DeltaKind, Media, MediaSource, Opaque};
use advisor_sse::Frames;
use advisor_testkit::Answer;
use serde_json::json;

use crate::table::{encode, protocols};
use crate::turns::play;

const README: &str = include_str!("../../README.md");

/// The declaration of the kinds of blocks.
const KINDS: &str = include_str!("../../../../message-aggregator/src/message/block.rs");

/// Returns each row of the table with its kind of block, and an answer that has the word `canary` in such a block.
fn rows() -> Vec<(&'static str, &'static str, Answer)> {
    let delta = |kind: DeltaKind| Answer::new().delta(Delta::from(kind)).done();
    let citation = |url: Option<&str>| {
        let mut citation = Citation::default();
        (citation.url, citation.title) = (url.map(Into::into), Some("canary".into()));
        delta(DeltaKind::Citation(Box::new(citation)))
    };
    let mut file = Media::from_url("image/png", "");
    file.source = MediaSource::ProviderFile("canary".into());
    let opaque = Opaque::new("other", "search", json!("canary"));
    let media = |media| Answer::new().delta(Delta::media(media)).done();
    vec![
        ("text", "Text", Answer::from_text("canary")),
        ("reasoning", "Reasoning", Answer::new().reasoning("canary").done()),
        ("refusal", "Refusal", delta(DeltaKind::Refusal("canary".into()))),
        (
            "media: bytes or an address",
            "Media",
            media(Media::from_url("image/png", "https://example.org/canary")),
        ),
        ("media that only the provider has", "Media", media(file)),
        ("citation of an address", "Citation", citation(Some("https://example.org/canary"))),
        ("citation without an address", "Citation", citation(None)),
        (
            "call of a client-side tool",
            "ToolCall",
            Answer::from_calls([("c1", "ask_user", r#"{"city":"canary"}"#)]),
        ),
        ("content that only its provider understands", "Opaque", delta(DeltaKind::Opaque(Box::new(opaque)))),
    ]
}

/// Returns the column of the table for a protocol of the tests.
fn column(protocol: &str) -> &'static str {
    match protocol {
        "AG-UI" => "`AgUi`",
        _ if protocol.starts_with("chat events") => "`ChatEvents`",
        _ if protocol.starts_with("UI messages") => "`UiMessages`",
        _ if protocol.starts_with("Chat Completions") => "`OpenAiChat`",
        _ if protocol.starts_with("Responses") => "`OpenAiResponses`",
        _ if protocol.starts_with("Messages") => "`AnthropicMessages`",
        "JSON lines" => "`JsonLines`",
        // The lookup of the cell fails.
        _ => "no column",
    }
}

/// Returns the cells of the table, by row and column.
fn cells() -> BTreeMap<&'static str, BTreeMap<&'static str, &'static str>> {
    let lines = README.lines().skip_while(|line| !line.starts_with("| content |"));
    let cells = |line: &'static str| line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>();
    let mut lines = lines.take_while(|line| line.starts_with('|')).map(cells);
    let head = lines.next().unwrap();
    let row = |row: Vec<&'static str>| (row[0], head.iter().copied().zip(row).skip(1).collect());
    lines.skip(1).map(row).collect()
}

#[tokio::test]
async fn every_kind_is_written_or_named_as_left_out() {
    let cells = cells();
    let rows = rows();
    assert_eq!(cells.keys().copied().collect::<BTreeSet<_>>(), rows.iter().map(|(row, ..)| *row).collect());
    for (row, _, answer) in rows {
        let turn = play([answer]).await;
        for (protocol, encoder, check) in protocols() {
            let cell = cells[row][column(protocol)];
            let stream = encode(encoder(), Frames::new(), &turn);
            assert_eq!(check(&stream, &turn), Ok(()), "{row}, {protocol}:\n{stream}");
            let expected = match cell {
                "written" | "as text" => true,
                "with blocks" => protocol.ends_with("with blocks"),
                "left out" => false,
                other => panic!("{other:?} says nothing"),
            };
            assert_eq!(stream.contains("canary"), expected, "{row}, {protocol}: {cell}\n{stream}");
        }
    }
}

#[test]
fn table_has_all_kinds_of_blocks() {
    let declared = KINDS.lines().filter_map(|line| line.trim().strip_prefix("/// See [`BlockContent::"));
    let declared: BTreeSet<_> = declared.filter_map(|rest| rest.strip_suffix("`].")).collect();
    assert_eq!(declared, rows().iter().map(|(_, kind, _)| *kind).collect());
}

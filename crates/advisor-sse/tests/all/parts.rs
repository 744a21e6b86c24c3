//! Parts of a turn that only some protocols show: denied calls, sources, and tools that end out of order.

use advisor_core::{
    BlockDelta, BlockHead, BlockId, BlockKind, ChatResponse, Chunk, Citation, FinishReason, Message,
};
use advisor_sse::{Frame, Frames};
use serde_json::{Value, json};

use crate::table::{encode, protocols};
use crate::turns::{self, Turn, play};

fn events(protocol: &str, turn: &Turn) -> Vec<Value> {
    let (_, encoder, check) = protocols().into_iter().find(|(name, ..)| *name == protocol).unwrap();
    let stream = encode(encoder(), Frames::new(), turn);
    assert_eq!(check(&stream, turn), Ok(()), "{protocol}:\n{stream}");
    Frame::read_all(&stream).iter().filter_map(Frame::json).collect()
}

fn of_type(events: &[Value], kind: &str) -> Vec<Value> {
    events.iter().filter(|event| event["type"] == kind).cloned().collect()
}

const DENIED: &str = "the application left this call out";

#[tokio::test]
async fn a_denied_call_is_told() {
    let turn = turns::denied().await;
    let has = |protocol: &str, kind: &str, id: &str, text: &str| {
        let events = of_type(&events(protocol, &turn), kind);
        let mut of_call = events.iter().filter(|event| event[id] == "c2");
        let shown = of_call.next().unwrap()[text].as_str().unwrap().to_owned();
        assert!(shown.contains(DENIED), "{protocol}: {shown}");
        assert_eq!(of_call.next(), None, "{protocol}");
    };
    // Clients refuse a message with a denial for which nobody was asked.
    for protocol in ["UI messages v5", "UI messages v6", "UI messages v7"] {
        has(protocol, "tool-output-error", "toolCallId", "errorText");
        assert!(of_type(&events(protocol, &turn), "tool-output-denied").is_empty(), "{protocol}");
    }
    has("chat events", "error", "id", "error");
    has("chat events", "tool_call_end", "id", "result");
    has("AG-UI", "TOOL_CALL_RESULT", "toolCallId", "content");
}

#[tokio::test]
async fn sources_are_shown_where_the_protocol_has_them() {
    let turn = play([turns::sources()]).await;
    for protocol in ["UI messages v5", "UI messages v6", "UI messages v7"] {
        let source = |id: &str, what: &str, title: &str| json!({"type": "source-url", "sourceId": id, "url": format!("https://example.org/{what}"), "title": title});
        let expected = [source("source-1", "rain", "Rain"), source("source-2", "wind", "Wind")];
        assert_eq!(of_type(&events(protocol, &turn), "source-url"), expected, "{protocol}");
    }
    let titles: Vec<_> = of_type(&events("AG-UI", &turn), "CUSTOM")
        .iter()
        .filter(|event| event["name"] == "citation")
        .map(|event| event["value"]["title"].clone())
        .collect();
    assert_eq!(titles, ["Rain", "Wind", "A book"]);
}

/// A client of the AI SDK keeps one source for each id.
#[test]
fn sources_of_one_block_have_ids_of_their_own() {
    let block = BlockId::new(1, 0);
    let source = |url: &str| {
        let mut citation = Citation::default();
        citation.url = Some(url.into());
        Chunk::Delta { block, delta: BlockDelta::Citation(Box::new(citation)) }
    };
    let turn: Turn = [
        Chunk::Opened { block, head: BlockHead::new(BlockKind::Citation) },
        source("https://example.org/1"),
        source("https://example.org/2"),
        Chunk::Completed(ChatResponse::new(1, Message::assistant(""), FinishReason::Stop)),
    ]
    .map(Ok)
    .into();
    let ids: Vec<_> = of_type(&events("UI messages v5", &turn), "source-url")
        .iter()
        .map(|event| event["sourceId"].clone())
        .collect();
    assert_eq!(ids, ["source-1", "source-2"]);
}

/// The places of a result and of its call, in the frames of a protocol. Responses name the tool in place of the call.
const RESULTS: [(&str, &str, &str); 10] = [
    ("chat events", "/result", "/id"),
    ("chat events with blocks", "/result", "/id"),
    ("chat events in older forms", "/result", "/id"),
    ("UI messages v5", "/output", "/toolCallId"),
    ("UI messages v6", "/output", "/toolCallId"),
    ("UI messages v7", "/output", "/toolCallId"),
    ("AG-UI", "/content", "/toolCallId"),
    ("Chat Completions with all", "/server_tool/result", "/server_tool/id"),
    ("Messages with all", "/content_block/content/0/text", "/content_block/tool_use_id"),
    ("JSON events", "/event/result/parts/0/value", "/call_id"),
];

#[tokio::test]
async fn tools_end_in_their_own_order_and_once() {
    let turn = turns::reversed().await;
    let shown = |protocol: &str, result: &str, call: &str| -> Vec<[String; 2]> {
        let at = |event: &Value, place: &str| Some(event.pointer(place)?.as_str()?.to_owned());
        let events = events(protocol, &turn);
        events.iter().filter_map(|event| Some([at(event, call)?, at(event, result)?])).collect()
    };
    for (protocol, result, call) in RESULTS {
        assert_eq!(shown(protocol, result, call), [["c2", "early"], ["c1", "late"]], "{protocol}");
    }
    let items = shown("Responses with all", "/item/output", "/item/name");
    assert_eq!(items, [["fast", "early"], ["slow", "late"]]);
}

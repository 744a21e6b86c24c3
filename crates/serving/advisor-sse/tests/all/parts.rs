//! Parts of a turn that only some protocols show: denied calls, sources, and tools that end out of order.

use advisor_core::{
    Block, BlockContent, BlockDelta, BlockHead, BlockId, BlockKind, ChatResponse, Chunk, Citation, Delta,
    DeltaKind, FinishReason, Media, Message,
};
use advisor_sse::{Frame, Frames};
use advisor_testkit::Answer;
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
    has("UI messages", "tool-output-error", "toolCallId", "errorText");
    assert!(of_type(&events("UI messages", &turn), "tool-output-denied").is_empty());
    has("chat events", "error", "id", "error");
    has("chat events", "tool_call_end", "id", "result");
    has("AG-UI", "TOOL_CALL_RESULT", "toolCallId", "content");
}

#[tokio::test]
async fn sources_are_shown_where_the_protocol_has_them() {
    let turn = play([turns::sources()]).await;
    let source = |id: &str, what: &str, title: &str| json!({"type": "source-url", "sourceId": id, "url": format!("https://example.org/{what}"), "title": title});
    let expected = [source("source-1", "rain", "Rain"), source("source-2", "wind", "Wind")];
    assert_eq!(of_type(&events("UI messages", &turn), "source-url"), expected);
    let titles: Vec<_> = of_type(&events("AG-UI", &turn), "CUSTOM")
        .iter()
        .filter(|event| event["name"] == "citation")
        .map(|event| event["value"]["title"].clone())
        .collect();
    assert_eq!(titles, ["Rain", "Wind", "A book"]);
}

fn cited(what: &str, start: usize, end: usize) -> Value {
    json!({"url": format!("https://example.org/{what}"), "title": what, "start_index": start, "end_index": end})
}

fn annotation(what: &str, start: usize, end: usize) -> Value {
    let mut annotation = cited(what, start, end);
    annotation["type"] = json!("url_citation");
    annotation
}

fn at(events: &[Value], place: &str) -> Vec<Value> {
    events.iter().filter_map(|event| event.pointer(place).cloned()).collect()
}

fn source(what: &str) -> Box<Citation> {
    let mut citation = Citation::default();
    (citation.url, citation.title) = (Some(format!("https://example.org/{what}").into()), Some(what.into()));
    Box::new(citation)
}

/// Returns the texts and annotations of the finished items of a response.
fn annotated(events: &[Value]) -> Vec<[Value; 2]> {
    let output = events.last().unwrap()["response"]["output"].as_array().unwrap();
    output.iter().map(|item| ["text", "annotations"].map(|field| item["content"][0][field].clone())).collect()
}

/// Each citation has the place of the text before it, behind that of the citation before.
#[tokio::test]
async fn citations_are_annotations_of_their_text() {
    let cites = |what: &str| Delta::from(DeltaKind::Citation(source(what)));
    let answer = Answer::new().text("It rains. ").delta(cites("rain")).delta(cites("sea"));
    let turn = play([answer.text("It blows.").delta(cites("wind")).done()]).await;
    let places = [("rain", 0, 10), ("sea", 0, 10), ("wind", 10, 19)];
    let chat = at(&events("Chat Completions", &turn), "/choices/0/delta/annotations/0/url_citation");
    assert_eq!(chat, places.map(|(what, start, end)| cited(what, start, end)));
    let responses = events("Responses", &turn);
    let annotations = places.map(|(what, start, end)| annotation(what, start, end));
    assert_eq!(at(&responses, "/annotation"), annotations);
    assert_eq!(annotated(&responses), [[json!("It rains. It blows."), json!(annotations)]]);
    let messages = at(&events("Messages", &turn), "/delta/citation/url");
    assert_eq!(messages, places.map(|(what, ..)| json!(format!("https://example.org/{what}"))));
}

/// Most providers end a text before they cite, and the next text is a block of its own.
#[test]
fn citations_belong_to_the_text_that_has_closed_before_them() {
    let blocks = [
        Block::text("It rains. "),
        Block::new(BlockContent::Citation(*source("rain"))),
        Block::text("It blows."),
        Block::new(BlockContent::Citation(*source("wind"))),
    ];
    let chunks = |(index, block): (u32, &Block)| {
        Chunk::from_block(BlockId::new(1, index), block).map(Ok).collect::<Vec<_>>()
    };
    let mut turn: Turn = (0..).zip(&blocks).flat_map(chunks).collect();
    turn.push(Ok(Chunk::Completed(ChatResponse::new(1, Message::assistant(""), FinishReason::Stop))));
    let chat = at(&events("Chat Completions", &turn), "/choices/0/delta/annotations/0/url_citation");
    assert_eq!(chat, [cited("rain", 0, 10), cited("wind", 10, 19)]);
    let expected = [
        [json!("It rains. "), json!([annotation("rain", 0, 10)])],
        [json!("It blows."), json!([annotation("wind", 0, 9)])],
    ];
    assert_eq!(annotated(&events("Responses", &turn)), expected);
    let messages = events("Messages", &turn);
    let cited = messages.iter().filter(|event| event.pointer("/delta/citation").is_some());
    assert_eq!(cited.map(|event| event["index"].clone()).collect::<Vec<_>>(), [0, 1]);
}

/// Some models give their sources before the text, or without one.
#[tokio::test]
async fn citation_without_a_text_has_an_empty_one() {
    let source = Delta::from(DeltaKind::Citation(source("rain")));
    let turn = play([Answer::new().reasoning("Hm.").delta(source).done()]).await;
    let responses = events("Responses", &turn);
    let item = &responses.last().unwrap()["response"]["output"][1]["content"][0];
    assert_eq!(
        (&item["text"], &item["annotations"][0]["url"]),
        (&json!(""), &json!("https://example.org/rain"))
    );
    let messages = events("Messages", &turn);
    let kinds: Vec<_> = of_type(&messages, "content_block_start")
        .iter()
        .map(|event| event["content_block"]["type"].clone())
        .collect();
    assert_eq!(kinds, ["thinking", "text"]);
}

#[tokio::test]
async fn picture_is_text_where_the_protocol_has_no_place() {
    const PICTURE: &str = "![image](data:image/png;base64,AQID)";
    let turn = play([turns::picture()]).await;
    let joined = |protocol: &str, place: &str| -> String {
        events(protocol, &turn).iter().filter_map(|event| event.pointer(place)?.as_str()).collect()
    };
    let expected = format!("{PICTURE}\n\nA fjord.");
    assert_eq!(joined("Chat Completions", "/choices/0/delta/content"), expected);
    let responses = events("Responses", &turn);
    let output = &responses.last().unwrap()["response"]["output"];
    assert_eq!([&output[0]["content"][0]["text"], &output[1]["content"][0]["text"]], [PICTURE, "A fjord."]);
    let messages = events("Messages", &turn);
    let texts: Vec<_> = messages.iter().filter_map(|event| event.pointer("/delta/text")).collect();
    assert_eq!(texts, [PICTURE, "A fjord."]);
    let media = of_type(&events("chat events", &turn), "media");
    assert_eq!(
        media,
        [json!({"type": "media", "url": "data:image/png;base64,AQID", "media_type": "image/png"})]
    );
}

/// The name and the address of media are the model's, and stay within the link.
#[tokio::test]
async fn media_end_no_link_early() {
    let media = Media::from_url("application/pdf", "https://example.org/a b)(<c>").with_name("a](x) [b\nc");
    let turn = play([Answer::new().delta(Delta::media(media)).done()]).await;
    let expected = "[a (x)  b c](https://example.org/a%20b%29%28%3Cc%3E)";
    let content = at(&events("Chat Completions", &turn), "/choices/0/delta/content");
    assert!(content.contains(&json!(expected)), "{content:?}");
}

/// The parts of a summary are blocks, which one field would run together.
#[test]
fn parts_of_reasoning_are_separated_in_one_field() {
    let parts = [(0, "**Looking**"), (1, "**Answering**"), (2, "\n\n**Checking**")];
    let mut turn: Turn = parts
        .into_iter()
        .flat_map(|(index, text)| {
            let block = Block::new(BlockContent::Reasoning(text.into()));
            Chunk::from_block(BlockId::new(1, index), &block).map(Ok).collect::<Vec<_>>()
        })
        .collect();
    turn.push(Ok(Chunk::Completed(ChatResponse::new(1, Message::assistant(""), FinishReason::Stop))));
    let reasoning: String = events("Chat Completions", &turn)
        .iter()
        .filter_map(|event| event.pointer("/choices/0/delta/reasoning_content")?.as_str())
        .collect();
    assert_eq!(reasoning, "**Looking**\n\n**Answering**\n\n**Checking**");
}

/// A client of the AI SDK keeps one source for each id.
#[test]
fn sources_of_one_block_have_ids_of_their_own() {
    let block = BlockId::new(1, 0);
    let source = |what| Chunk::Delta { block, delta: BlockDelta::Citation(source(what)) };
    let turn: Turn = [
        Chunk::Opened { block, head: BlockHead::new(BlockKind::Citation) },
        source("1"),
        source("2"),
        Chunk::Completed(ChatResponse::new(1, Message::assistant(""), FinishReason::Stop)),
    ]
    .map(Ok)
    .into();
    let ids: Vec<_> = of_type(&events("UI messages", &turn), "source-url")
        .iter()
        .map(|event| event["sourceId"].clone())
        .collect();
    assert_eq!(ids, ["source-1", "source-2"]);
}

/// The places of a result and of its call, in the frames of a protocol.
const RESULTS: [(&str, &str, &str); 4] = [
    ("chat events", "/result", "/id"),
    ("chat events with blocks", "/result", "/id"),
    ("UI messages", "/output", "/toolCallId"),
    ("AG-UI", "/content", "/toolCallId"),
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
}

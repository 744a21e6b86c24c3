//! Formats with numbered blocks, whose numbers may come again: the fast path must not take them for one another.

use std::collections::BTreeMap;

use advisor_core::DeltaKind;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// The numbers of blocks on the wire that are open, each with its number of ours.
#[derive(Debug, Default)]
struct OpenBlocks {
    open: BTreeMap<i64, i64>,
    last: Option<i64>,
    count: i64,
}

impl OpenBlocks {
    fn start(&mut self, wire: i64) -> i64 {
        let number = self.count;
        self.count += 1;
        self.open.insert(wire, number);
        self.last = Some(number);
        number
    }

    /// Returns the number of a block, or else that of the last one (Q56).
    fn number(&self, wire: i64) -> Option<i64> {
        self.open.get(&wire).copied().or(self.last)
    }

    fn end(&mut self, wire: i64) -> Option<i64> {
        let number = self.open.remove(&wire)?;
        self.last = self.last.filter(|last| *last != number);
        Some(number)
    }
}

/// Like the events of Anthropic's Messages.
#[derive(Debug, Default)]
struct MessagesLike(OpenBlocks);

impl WireFormat for MessagesLike {
    const FRAMING: Framing = Framing::Sse;
    const FIELDS: &'static Field = &Field::Object(&[
        ("type", Field::Read),
        ("index", Field::Read),
        ("content_block", Field::Read),
        (
            "delta",
            Field::Object(&[
                ("type", Field::Read),
                ("text", Field::Text),
                ("thinking", Field::Text),
                ("partial_json", Field::Text),
            ]),
        ),
    ]);

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let event: Value = serde_json::from_str(event.data)?;
        let index = event["index"].as_i64().unwrap_or_default();
        match event["type"].as_str() {
            Some("content_block_start") => {
                let number = self.0.start(index);
                if event["content_block"]["type"] == "tool_use" {
                    let call = ToolCallDelta::start(number, format!("c{number}"), "f");
                    deltas.push_back(Delta::tool_call(call).with_block(number));
                }
                return Ok(Meaning::BlockStart);
            }
            Some("content_block_delta") => {
                let Some(number) = self.0.number(index) else { return Ok(Meaning::Unknown) };
                let delta = &event["delta"];
                let text = |key: &str| delta[key].as_str().unwrap_or_default();
                let delta = match delta["type"].as_str() {
                    Some("text_delta") => Delta::text(text("text")),
                    Some("thinking_delta") => Delta::reasoning(text("thinking")),
                    _ => Delta::tool_call(ToolCallDelta::arguments(number, text("partial_json"))),
                };
                deltas.push_back(delta.with_block(number));
            }
            Some("content_block_stop") => {
                let ended =
                    self.0.end(index).map(|number| Delta::from(DeltaKind::BlockEnd).with_block(number));
                deltas.extend(ended);
            }
            _ => return Ok(Meaning::KeepAlive),
        }
        Ok(Meaning::Piece)
    }
}

/// Like the events of OpenAI's Responses.
#[derive(Debug, Default)]
struct ResponsesLike(OpenBlocks);

impl WireFormat for ResponsesLike {
    const FRAMING: Framing = Framing::Sse;
    const FIELDS: &'static Field = &Field::Object(&[
        ("type", Field::Read),
        ("output_index", Field::Read),
        ("item", Field::Read),
        ("delta", Field::Text),
        ("sequence_number", Field::Padding),
        ("obfuscation", Field::Padding),
    ]);

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let event: Value = serde_json::from_str(event.data)?;
        let index = event["output_index"].as_i64().unwrap_or_default();
        let text = event["delta"].as_str().unwrap_or_default();
        match event["type"].as_str() {
            Some("response.output_item.added") => {
                self.0.start(index);
                return Ok(Meaning::BlockStart);
            }
            Some("response.in_progress") => return Ok(Meaning::KeepAlive),
            Some("response.output_item.done") => {
                let ended =
                    self.0.end(index).map(|number| Delta::from(DeltaKind::BlockEnd).with_block(number));
                deltas.extend(ended);
            }
            kind => {
                let Some(number) = self.0.number(index) else { return Ok(Meaning::Unknown) };
                let delta = match kind {
                    Some("response.output_text.delta") => Delta::text(text),
                    Some("response.reasoning_summary_text.delta") => Delta::reasoning(text),
                    _ => Delta::tool_call(ToolCallDelta::arguments(number, text)),
                };
                deltas.push_back(delta.with_block(number));
            }
        }
        Ok(Meaning::Piece)
    }
}

/// One step of a made-up stream.
#[derive(Debug, Clone)]
enum Step {
    Start { index: i64, kind: usize },
    Deltas { index: i64, kind: usize, texts: Vec<String> },
    Stop { index: i64 },
    Ping,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text = prop_oneof![4 => "[a-z ]{1,9}", 1 => Just(r#"\"é😀\\n"#.to_owned()), 1 => Just(String::new())];
    let step = prop_oneof![
        2 => (0..3_i64, 0..3_usize).prop_map(|(index, kind)| Step::Start { index, kind }),
        4 => (0..3_i64, 0..3_usize, vec(text, 1..7))
            .prop_map(|(index, kind, texts)| Step::Deltas { index, kind, texts }),
        2 => (0..3_i64).prop_map(|index| Step::Stop { index }),
        1 => Just(Step::Ping),
    ];
    vec(step, 1..24)
}

fn messages_like(steps: &[Step]) -> String {
    let mut body = String::new();
    let mut event =
        |name: &str, rest: &str| body += &format!("event: {name}\ndata: {{\"type\":\"{name}\"{rest}}}\n\n");
    for step in steps {
        match step {
            Step::Start { index, kind } => {
                let kind = ["text", "thinking", "tool_use"][*kind];
                let rest = format!(",\"index\":{index},\"content_block\":{{\"type\":\"{kind}\"}}");
                event("content_block_start", &rest);
            }
            Step::Deltas { index, kind, texts } => {
                let (kind, key) = [
                    ("text_delta", "text"),
                    ("thinking_delta", "thinking"),
                    ("input_json_delta", "partial_json"),
                ][*kind];
                for text in texts {
                    let padding = " ".repeat(text.len() % 4);
                    let delta = format!("{{\"type\":\"{kind}\",\"{key}\":\"{text}\"}}{padding}");
                    event("content_block_delta", &format!(",\"index\":{index},\"delta\":{delta}"));
                }
            }
            Step::Stop { index } => event("content_block_stop", &format!(",\"index\":{index}")),
            Step::Ping => event("ping", ""),
        }
    }
    body
}

fn responses_like(steps: &[Step]) -> String {
    let mut body = String::new();
    let mut number = 0;
    let mut event = |name: &str, rest: &str| {
        number += 1;
        let data = format!("{{\"type\":\"{name}\",\"sequence_number\":{number}{rest}}}");
        body += &format!("event: {name}\ndata: {data}\n\n");
    };
    for step in steps {
        match step {
            Step::Start { index, .. } => {
                event("response.output_item.added", &format!(",\"output_index\":{index},\"item\":{{}}"));
            }
            Step::Deltas { index, kind, texts } => {
                let kind = ["output_text", "reasoning_summary_text", "function_call_arguments"][*kind];
                for text in texts {
                    let padding = "xY".repeat(8 - text.len().min(8));
                    let rest = format!(
                        ",\"item_id\":\"i{index}\",\"output_index\":{index},\"delta\":\"{text}\",\"obfuscation\":\"{padding}\""
                    );
                    event(&format!("response.{kind}.delta"), &rest);
                }
            }
            Step::Stop { index } => {
                event("response.output_item.done", &format!(",\"output_index\":{index},\"item\":{{}}"));
            }
            Step::Ping => event("response.in_progress", ""),
        }
    }
    body
}

/// Compares the fast path with parsing: whole, in pieces, and byte by byte.
fn assert_as_parsed<W: WireFormat + Default>(body: &str, piece: usize) {
    let expected = read_in(decoder::<W>().without_fast_path(), &[body.as_bytes()]);
    for length in [body.len().max(1), piece, 1] {
        let pieces: Vec<&[u8]> = body.as_bytes().chunks(length).collect();
        assert_eq!(read_in(decoder::<W>(), &pieces), expected, "{length} bytes of {body}");
    }
}

proptest! {
    #[test]
    fn law_s5_repeated_block_numbers_read_as_parsed(steps in steps(), piece in 2..300_usize) {
        assert_as_parsed::<MessagesLike>(&messages_like(&steps), piece);
        assert_as_parsed::<ResponsesLike>(&responses_like(&steps), piece);
    }
}

#[test]
fn template_ends_with_its_block() {
    let texts = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
    let block = |index| {
        let deltas = Step::Deltas { index, kind: 0, texts: texts.clone() };
        [Step::Start { index, kind: 0 }, deltas, Step::Stop { index }]
    };
    let steps = [block(0), block(0), block(1)].concat();
    let numbers = |(deltas, _, _): (Vec<Delta>, Option<ErrorKind>, End)| -> Vec<_> {
        deltas.iter().filter_map(|delta| delta.block).collect()
    };
    let expected = [[0; 5], [1; 5], [2; 5]].concat();
    assert_eq!(numbers(read_in(decoder::<MessagesLike>(), &[messages_like(&steps).as_bytes()])), expected);
    assert_eq!(numbers(read_in(decoder::<ResponsesLike>(), &[responses_like(&steps).as_bytes()])), expected);
}

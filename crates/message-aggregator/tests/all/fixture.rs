//! Reads the fixtures; `fixtures/README.md` describes their form.

use std::path::PathBuf;

use message_aggregator::{
    AggregateError, BlockContent, BlockKind, ChatResponse, Delta, DeltaKind, Finish, FinishReason,
    ToolCallDelta, Usage,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) struct Fixture {
    pub(crate) deltas: Vec<Delta>,
    pub(crate) expected: Expected,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    #[serde(rename = "about")]
    _about: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    expect: Expected,
}

/// The result of a fixture.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    #[serde(default)]
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) reasoning: String,
    /// The kinds of the blocks, in order.
    pub(crate) blocks: Vec<BlockKind>,
    #[serde(default)]
    pub(crate) calls: Vec<ExpectedCall>,
    pub(crate) finish: FinishReason,
    #[serde(default)]
    pub(crate) inferred: bool,
    #[serde(default)]
    pub(crate) usage: Option<Usage>,
    #[serde(default)]
    pub(crate) error: Option<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedCall {
    /// Absent where the provider sent none.
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) complete: bool,
}

/// One wire event. Its deltas come in the order of these fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    reasoning: Option<String>,
    text: Option<String>,
    calls: Option<Vec<Fragment>>,
    finish: Option<String>,
    usage: Option<Usage>,
    #[serde(default)]
    done: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fragment {
    index: Option<i64>,
    id: Option<String>,
    name: Option<String>,
    /// A text, or a structured value as some servers send it; that one is serialised.
    arguments: Option<Value>,
}

impl Fixture {
    /// Reads `fixtures/<name>.jsonl`.
    pub(crate) fn read(name: &str) -> Self {
        let path = folder().join(name).with_extension("jsonl");
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        let [about, events @ .., expect] = lines.as_slice() else {
            panic!("{name} needs a line about it, its events and what is expected");
        };
        parse::<About>(name, about);
        Self {
            deltas: events.iter().flat_map(|line| parse::<Event>(name, line).into_deltas()).collect(),
            expected: parse::<Expect>(name, expect).expect,
        }
    }

    /// The names of all fixtures there are.
    pub(crate) fn names() -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(folder())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn parse<T: DeserializeOwned>(name: &str, line: &str) -> T {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: {error} in {line}"))
}

impl Event {
    fn into_deltas(self) -> Vec<Delta> {
        let mut deltas = Vec::new();
        deltas.extend(self.reasoning.map(Delta::reasoning));
        deltas.extend(self.text.map(Delta::text));
        deltas.extend(self.calls.map(|calls| {
            let fragments = calls.into_iter().map(Fragment::into_delta).collect();
            Delta::from(DeltaKind::ToolCalls(fragments))
        }));
        deltas.extend(self.finish.map(|word| Delta::finish(finish(&word))));
        deltas.extend(self.usage.map(Delta::usage));
        deltas.extend(self.done.then(Delta::done));
        deltas
    }
}

impl Fragment {
    fn into_delta(self) -> ToolCallDelta {
        let mut delta = ToolCallDelta::default();
        delta.index = self.index;
        delta.call_id = self.id.map(Into::into);
        delta.name = self.name.map(Into::into);
        delta.arguments_delta = self.arguments.map(|arguments| match arguments {
            Value::String(text) => text.into(),
            value => value.to_string().into(),
        });
        delta
    }
}

fn finish(word: &str) -> Finish {
    let reason =
        serde_json::from_value(Value::from(word)).unwrap_or_else(|_| FinishReason::Other(word.into()));
    Finish::written(reason, word)
}

impl Expected {
    /// Converts `response` and `error` to the form of a fixture. Ids made by the aggregator count as absent.
    pub(crate) fn of(response: &ChatResponse, error: Option<&AggregateError>) -> Self {
        let mut reasoning = String::new();
        for (_, block) in response.blocks() {
            if let BlockContent::Reasoning(text) = block.content() {
                reasoning.push_str(text);
            }
        }
        Self {
            text: response.text(),
            reasoning,
            blocks: response.blocks().map(|(_, block)| block.kind()).collect(),
            calls: response
                .tool_calls()
                .map(|(block, call)| ExpectedCall {
                    id: (call.id != *format!("call_{}_{}", block.round, block.position()))
                        .then(|| call.id.as_str().to_owned()),
                    name: call.name.as_str().to_owned(),
                    arguments: call.arguments.clone(),
                    complete: call.complete,
                })
                .collect(),
            finish: response.finish.reason.clone(),
            inferred: response.finish.inferred,
            usage: response.usage,
            error: error.map(|error| match error {
                AggregateError::Truncated { .. } => "truncated".to_owned(),
                other => other.to_string(),
            }),
        }
    }
}

//! Turns of several answers. Whatever waits on the server, the next request has all that the server needs to go on, and
//! the request after the user's next message has nothing that it refuses.

use std::collections::HashSet;

use advisor_core::{ChatRequest, Message, MessageList, ToolResult};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::request::{BodySettings, body};

/// One answer as it is drawn: what it holds beside the results that the server owes.
#[derive(Debug, Clone)]
struct Drawn {
    thinks: bool,
    says: bool,
    /// Whether a tool of the server runs in it to its end.
    searches: bool,
    /// Whether a running program ends in it.
    ends_program: bool,
    end: End,
    container: Named,
}

/// What the server waits for at the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The program that it runs calls this number of the caller's tools.
    Program(usize),
    /// The model calls a tool of the caller beside one of the server.
    Beside,
    /// The model calls a tool of the caller.
    Call,
    /// It pauses, with a tool that has not run yet.
    PausedTool,
    /// It pauses.
    Paused,
}

/// The place in which an answer names its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Nowhere,
    Start,
    End,
    /// At the beginning, and `null` at the end.
    StartOnly,
}

/// The server within a turn: what it has begun and not ended.
#[derive(Debug, Default)]
struct Server {
    program: Option<String>,
    waiting: Vec<String>,
    ids: usize,
}

impl Server {
    fn id(&mut self, prefix: &str) -> String {
        self.ids += 1;
        format!("{prefix}_{}", self.ids)
    }

    /// Returns the content of the next answer, and its stop reason.
    fn answer(&mut self, drawn: &Drawn) -> (Vec<Value>, &'static str) {
        let mut content: Vec<Value> = self.waiting.drain(..).map(|id| found(&id)).collect();
        if drawn.ends_program {
            content.extend(self.program.take().map(|id| ran(&id)));
        }
        if drawn.thinks {
            content.push(json!({"type": "thinking", "thinking": "Hm.", "signature": self.id("sig")}));
        }
        // An answer of thinking alone does not go back.
        if drawn.says || drawn.thinks {
            content.push(json!({"type": "text", "text": format!("I look. {}", self.ids)}));
        }
        if drawn.searches {
            let id = self.id("srvtoolu");
            content.extend([search(&id), found(&id)]);
        }
        // While a program runs, only its calls are made.
        let end = if self.program.is_some() && !matches!(drawn.end, End::Program(_)) {
            End::Program(1)
        } else {
            drawn.end
        };
        let stop_reason = match end {
            End::Program(calls) => {
                let program = self.program.clone().unwrap_or_else(|| {
                    let id = self.id("srvtoolu");
                    content.push(json!({"type": "server_tool_use", "id": id, "name": "code_execution",
                        "input": {"code": "t = await look()"}}));
                    id
                });
                for _ in 0..calls {
                    let caller = json!({"type": "code_execution_20260120", "tool_id": program});
                    content.push(
                        json!({"type": "tool_use", "id": self.id("toolu"), "name": "look", "input": {},
                        "caller": caller}),
                    );
                }
                self.program = Some(program);
                "tool_use"
            }
            End::Beside | End::Call => {
                if end == End::Beside {
                    let id = self.id("srvtoolu");
                    content.push(search(&id));
                    self.waiting.push(id);
                }
                content
                    .push(json!({"type": "tool_use", "id": self.id("toolu"), "name": "look", "input": {}}));
                "tool_use"
            }
            End::PausedTool => {
                let id = self.id("srvtoolu");
                content.push(search(&id));
                self.waiting.push(id);
                "pause_turn"
            }
            End::Paused => {
                content.push(json!({"type": "text", "text": "More."}));
                "pause_turn"
            }
        };
        (content, stop_reason)
    }
}

fn search(id: &str) -> Value {
    json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "x"}})
}

fn found(id: &str) -> Value {
    json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []})
}

fn ran(id: &str) -> Value {
    json!({"type": "code_execution_tool_result", "tool_use_id": id, "content": {"type": "code_execution_result"}})
}

/// The events of an answer with this content, which names the container.
fn events(content: &[Value], stop_reason: &str, named: Named, container: &Value) -> Vec<Value> {
    let mut events = vec![start()];
    if matches!(named, Named::Start | Named::StartOnly) {
        events[0]["message"]["container"] = container.clone();
    }
    for (index, block) in (0..).zip(content) {
        let mut begun = block.clone();
        let piece = match block["type"].as_str() {
            Some("text") => {
                begun["text"] = "".into();
                vec![say(index, block["text"].as_str().expect("a text"))]
            }
            Some("thinking") => {
                (begun["thinking"], begun["signature"]) = ("".into(), "".into());
                vec![think(index, "Hm."), sign(index, block["signature"].as_str().expect("a text"))]
            }
            Some("server_tool_use") => {
                begun["input"] = json!({});
                vec![input(index, &block["input"].to_string())]
            }
            _ => vec![],
        };
        events.push(open(index, begun));
        events.extend(piece);
        events.push(stop(index));
    }
    let mut last = finish(stop_reason);
    match named {
        Named::End => last["delta"]["container"] = container.clone(),
        Named::StartOnly => last["delta"]["container"] = Value::Null,
        Named::Nowhere | Named::Start => {}
    }
    events.extend([last, end()]);
    events
}

fn answer_of(events: &[Value]) -> Message {
    let read = read(&[&sse(events)], AggregatorLimits::default());
    read.response.expect("a complete answer").message().clone()
}

fn body_of(messages: &MessageList) -> Value {
    let request = ChatRequest::new(messages.clone());
    let body = body(&request, "m", &FORMAT.into(), &BodySettings::default()).expect("a body");
    serde_json::from_slice(&body.json).expect("JSON")
}

/// The content of the messages of a body with this role.
fn sent(body: &Value, role: &str) -> Vec<Value> {
    let messages = body["messages"].as_array().into_iter().flatten();
    let of_role = messages.filter(|message| message["role"] == role);
    of_role.flat_map(|message| message["content"].as_array()).flatten().cloned().collect()
}

/// What the API would refuse in a body whose turn of the assistant has ended.
fn refused(body: &Value) -> Vec<String> {
    let blocks = sent(body, "assistant");
    let mut refused = Vec::new();
    let mut called = HashSet::new();
    for (place, block) in blocks.iter().enumerate() {
        let id = block["id"].as_str().unwrap_or_default();
        let mut refuse_if = |fails: bool, why: &str| {
            if fails {
                refused.push(format!("{block} {why}"));
            }
        };
        match block["type"].as_str().unwrap_or_default() {
            "server_tool_use" => {
                let is_answered = blocks[place..].iter().any(|later| later["tool_use_id"] == id);
                refuse_if(!is_answered, "has no result");
                called.insert(id);
            }
            "tool_use" => {
                let program = block["caller"]["tool_id"].as_str();
                refuse_if(
                    program.is_some_and(|program| !called.contains(program)),
                    "names a missing program",
                );
                let is_answered = sent(body, "user").iter().any(|result| result["tool_use_id"] == id);
                refuse_if(!is_answered, "is not answered");
            }
            _ => {
                let call = block["tool_use_id"].as_str();
                refuse_if(call.is_some_and(|call| !called.contains(call)), "has no call");
            }
        }
    }
    if !body["container"].is_null() {
        refused.push("the container belongs to an earlier turn".to_owned());
    }
    refused
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let end = prop_oneof![
        (1..3_usize).prop_map(End::Program),
        select(vec![End::Beside, End::Call, End::PausedTool, End::Paused]),
    ];
    let container = select(vec![Named::Nowhere, Named::Start, Named::End, Named::StartOnly]);
    (any::<[bool; 4]>(), end, container).prop_map(
        |([thinks, says, searches, ends_program], end, container)| Drawn {
            thinks,
            says,
            searches,
            ends_program,
            end,
            container,
        },
    )
}

proptest! {
    /// Law M1 and what the documentation of server tools demands: an answer that waits goes back as it came, until the
    /// turn ends.
    #[test]
    fn law_m1_open_turn_goes_back_as_it_came(turn in vec(drawn(), 1..6), earlier in vec(drawn(), 0..2)) {
        let mut list = MessageList::from(vec![Message::user("Hi")]);
        let mut server = Server::default();
        let play = |drawn: &Drawn, server: &mut Server, list: &mut MessageList| {
            let (content, stop_reason) = server.answer(drawn);
            let container = json!({"id": server.id("container")});
            let answer = answer_of(&events(&content, stop_reason, drawn.container, &container));
            let results: Vec<_> = answer.tool_calls().map(|call| ToolResult::new(call, vec!["1".into()])).collect();
            list.push(answer);
            results.into_iter().for_each(|result| list.push(Message::tool(result)));
            (content, (drawn.container != Named::Nowhere).then(|| container["id"].clone()))
        };
        // A turn that was interrupted, whatever it waited for.
        for drawn in &earlier {
            play(drawn, &mut server, &mut list);
        }
        if !earlier.is_empty() {
            list.push(Message::user("And?"));
            prop_assert_eq!(refused(&body_of(&list)), Vec::<String>::new());
        }
        let ended = sent(&body_of(&list), "assistant");
        server = Server { ids: server.ids, ..Server::default() };
        let (mut expected, mut named) = (Vec::new(), Value::Null);
        for drawn in &turn {
            let (content, container) = play(drawn, &mut server, &mut list);
            expected.extend(content);
            named = container.unwrap_or(named);
            let body = body_of(&list);
            prop_assert_eq!(&sent(&body, "assistant")[ended.len()..], &expected[..]);
            prop_assert_eq!(body.get("container").unwrap_or(&Value::Null), &named);
            let mut goes_on = list.clone();
            goes_on.push(Message::user("And?"));
            prop_assert_eq!(refused(&body_of(&goes_on)), Vec::<String>::new());
        }
    }
}

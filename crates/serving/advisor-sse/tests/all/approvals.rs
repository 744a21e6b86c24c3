//! Calls that wait for the approval of a person, in the protocols that have approvals.

use advisor_core::{
    CallKey, Chunk, ClientSideCall, ConversationKey, Part, ToolCall, ToolResult, ToolSet, TurnId,
};
use advisor_sse::{
    AgUi, AnswerInfo, ApprovalId, Approvals, Encoder, Encoding, Frame, Frames, OpenAiResponses, UiMessages,
};
use serde_json::{Value, json};

use crate::table::encode;
use crate::turns::{self, Turn};
use crate::validate;

fn approvals(tools: ToolSet) -> Approvals {
    Approvals::new(ConversationKey::new("c1").unwrap(), TurnId::new("t1").unwrap(), tools)
}

fn ui() -> UiMessages {
    UiMessages::new("m1").with_approvals(approvals(turns::tools()))
}

fn events(encoder: impl Encoder + 'static, turn: &Turn) -> Vec<Frame> {
    Frame::read_all(&encode(Box::new(encoder), Frames::new(), turn))
}

fn of_type(frames: &[Frame], kind: &str) -> Vec<Value> {
    frames.iter().filter_map(Frame::json).filter(|event| event["type"] == kind).collect()
}

/// Checks that an id names the call `c1`, the first of its answer.
fn expect_of_c1(id: &Value) {
    let id: ApprovalId = id.as_str().unwrap().parse().unwrap();
    let call = ToolCall::new("c1", "weather", r#"{"city":"Oslo"}"#);
    let key = Some(CallKey::new(TurnId::new("t1").unwrap(), 1, 0));
    let open = ClientSideCall { key, call, started: false, definition: None };
    assert!(id.names(&ConversationKey::new("c1").unwrap(), &open), "{id}");
    assert_eq!(id.call(), "c1");
}

/// A call of the server's tool waits for a person, one of a client-side tool for its result.
#[tokio::test]
async fn ui_messages_ask_for_approvals() {
    let turn = turns::waiting().await;
    let frames = events(ui(), &turn);
    assert_eq!(validate::ui_messages(&frames), Ok(()));
    let asked = of_type(&frames, "tool-approval-request");
    assert_eq!((asked.len(), &asked[0]["toolCallId"]), (1, &json!("c1")));
    expect_of_c1(&asked[0]["approvalId"]);
    assert_eq!(of_type(&frames, "tool-input-available").len(), 2);
    assert_eq!(of_type(&frames, "finish")[0]["finishReason"], "tool-calls");
    // Without approvals, or tools that the application does not offer, it asks for none.
    for encoder in [UiMessages::new("m1"), UiMessages::new("m1").with_approvals(approvals(ToolSet::new()))] {
        assert_eq!(of_type(&events(encoder, &turn), "tool-approval-request"), [Value::Null; 0]);
    }
}

/// The outcome of the run names what it waits for.
#[tokio::test]
async fn ag_ui_interrupts_for_approvals() {
    let turn = turns::waiting().await;
    let frames = events(AgUi::new("c1", "r1").with_approvals(approvals(turns::tools())), &turn);
    assert_eq!(validate::ag_ui(&frames), Ok(()));
    let finished = of_type(&frames, "RUN_FINISHED");
    let outcome = &finished[0]["outcome"];
    assert_eq!((&outcome["type"], outcome["interrupts"].as_array().unwrap().len()), (&json!("interrupt"), 1));
    let interrupt = &outcome["interrupts"][0];
    assert_eq!([&interrupt["toolCallId"], &interrupt["reason"]], ["c1", "tool_call"]);
    expect_of_c1(&interrupt["id"]);
    assert_eq!(interrupt["message"], "May `weather` run?");
    assert_eq!(interrupt["responseSchema"]["required"], json!(["approved"]));
    assert_eq!(of_type(&frames, "TOOL_CALL_START").len(), 2);
    for approvals in [None, Some(approvals(ToolSet::new()))] {
        let run = AgUi::new("c1", "r1");
        let run = match approvals {
            Some(approvals) => run.with_approvals(approvals),
            None => run,
        };
        assert_eq!(of_type(&events(run, &turn), "RUN_FINISHED")[0]["outcome"], Value::Null);
    }
}

/// A request is an item in place of the call.
#[tokio::test]
async fn responses_ask_for_approvals() {
    let turn = turns::waiting().await;
    let info = AnswerInfo { id: "answer-1".into(), model: "chain".into(), created: 1_700_000_000 };
    let frames = events(OpenAiResponses::new(info).with_approvals(approvals(turns::tools())), &turn);
    assert_eq!(validate::openai_responses(&frames), Ok(()));
    let completed = of_type(&frames, "response.completed");
    let output = completed[0]["response"]["output"].as_array().unwrap();
    expect_of_c1(&output[0]["id"]);
    let asked = json!({"type": "mcp_approval_request", "id": output[0]["id"], "name": "weather",
        "arguments": r#"{"city":"Oslo"}"#, "server_label": "chain"});
    assert_eq!((&output[0], &output[1]["type"]), (&asked, &json!("function_call")));
}

/// A call that has run needs no approval.
#[tokio::test]
async fn calls_with_results_need_no_approval() {
    for (name, turn) in turns::all().await {
        let frames = events(ui(), &turn);
        assert_eq!(validate::ui_messages(&frames), Ok(()), "{name}");
        let run = events(AgUi::new("c1", "r1").with_approvals(approvals(turns::tools())), &turn);
        assert_eq!(validate::ag_ui(&run), Ok(()), "{name}");
        let asked = of_type(&frames, "tool-approval-request");
        assert_eq!(asked.is_empty(), name != "calls of both sides that wait", "{name}: {asked:?}");
    }
}

/// The ends of decided calls come before the first step of the turn that continues.
#[tokio::test]
async fn ui_messages_end_calls_of_earlier_turns() {
    struct Decided(UiMessages);
    impl Encoder for Decided {
        fn begin(&mut self, frames: &mut Frames) {
            self.0.begin(frames);
            let call = |id: &str| ToolCall::new(id, "weather", "{}");
            let clear = ToolResult::new(&call("c1"), vec![Part::Json(json!({"sky": "clear"}))]);
            self.0.earlier_result("c1", &clear, frames);
            self.0.earlier_result("c2", &ToolResult::error(&call("c2"), "it failed"), frames);
            self.0.earlier_denial("c3", frames);
        }
        fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
            self.0.chunk(chunk, frames);
        }
        fn failure(&mut self, failure: &advisor_sse::Failure, frames: &mut Frames) {
            self.0.failure(failure, frames);
        }
    }
    let turn = turns::play([advisor_testkit::Answer::from_text("It is clear.")]).await;
    let mut encoding = Encoding::new(Decided(ui()));
    let mut stream = String::from_utf8(encoding.begin().to_vec()).unwrap();
    turn.iter().for_each(|item| stream += std::str::from_utf8(&encoding.push(item)).unwrap());
    let frames = Frame::read_all(&stream);
    assert_eq!(validate::ui_messages(&frames), Ok(()), "{stream}");
    let kinds: Vec<_> = frames.iter().filter_map(Frame::json).map(|event| event["type"].clone()).collect();
    let first = ["start", "tool-output-available", "tool-output-error", "tool-output-denied", "start-step"];
    assert_eq!(kinds[..5], first);
    assert_eq!(of_type(&frames, "tool-output-available")[0]["output"], json!({"sky": "clear"}));
}

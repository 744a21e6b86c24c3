//! Calls of one turn under one id, as of models that number the calls of each answer.

use advisor_core::ToolDefinition;
use advisor_sse::Frame;
use advisor_testkit::Answer;
use axum::http::StatusCode;
use serde_json::{Value, json};
use tool_call_advisor::{ClientSideTool, FnTool, ToolCallAdvisor};

use crate::setting::{Setting, chain, json_of, setting, text};

fn call(city: &str) -> Answer {
    Answer::new().call("call_0", "weather", &json!({"city": city}).to_string()).done()
}

fn asking(message: &str) -> Value {
    json!({"message": message, "conversation": "c1"})
}

/// Returns the ids of the calls and of the results among messages, in their order.
fn ids(messages: &Value) -> (Vec<&Value>, Vec<&Value>) {
    let messages = messages.as_array().unwrap().iter();
    let calls = messages.clone().filter_map(|shown| shown["calls"].as_array()).flatten();
    let results = messages.filter(|shown| shown["role"] == "tool");
    (calls.map(|call| &call["id"]).collect(), results.map(|result| &result["id"]).collect())
}

/// Stored calls have the ids that the stream of their turn had, and each result that of its call.
#[tokio::test]
async fn stored_calls_have_the_ids_of_the_stream() {
    let setting = setting([call("Oslo"), call("Lima"), Answer::from_text("It is sunny.")]);
    let stream = text(setting.post("/api/chat", &asking("How is it?")).await).await;
    let events: Vec<_> = Frame::read_all(&stream).iter().filter_map(Frame::json).collect();
    let started = events.iter().filter(|event| event["type"] == "tool_call_start");
    let started: Vec<_> = started.map(|event| &event["id"]).collect();
    assert_eq!(started, ["call_0", "call_0_2"]);
    let read = json_of(setting.get("/api/conversations/c1?view=page").await).await;
    assert_eq!(ids(&read["messages"]), (started.clone(), started.clone()));
    let parts = read["messages"].as_array().unwrap().iter().filter_map(|shown| shown["parts"].as_array());
    let parts: Vec<_> = parts.flatten().filter(|part| part["type"] == "call").collect();
    assert_eq!(parts.iter().map(|part| &part["id"]).collect::<Vec<_>>(), started);
    assert_eq!(parts[1]["args"]["city"], "Lima");
}

/// A result that begins the next turn has the id of its call, too, and the numbers begin again.
#[tokio::test]
async fn results_of_the_next_turn_have_the_id_of_their_call() {
    let asked = Answer::new().call("call_0", "ask", "{}").done();
    let setting = with_client_side_tool([call("Oslo"), asked, call("Lima"), Answer::from_text("It rains.")]);
    let user = json!({"role": "user", "content": "How is it?"});
    let result = json!({"role": "tool", "tool_call_id": "call_0", "content": "here"});
    for message in [user, result] {
        let body = json!({"messages": [message], "user": "c1"});
        let response = setting.post("/v1/chat/completions", &body).await;
        assert_eq!(response.status(), StatusCode::OK, "{}", text(response).await);
    }
    let read = setting.read().await;
    assert_eq!(ids(&read["messages"]).0, ["call_0", "call_0_2", "call_0"]);
    assert_eq!(ids(&read["messages"]).1, ["call_0", "call_0_2", "call_0"]);
}

/// A server with the tool `weather`, and a tool `ask` that the client runs.
fn with_client_side_tool(answers: impl IntoIterator<Item = Answer>) -> Setting {
    let definition =
        |name| ToolDefinition::new(name, "Tells the weather, or the place.", json!({"type": "object"}));
    chain(answers, |client| {
        client
            .advisor(ToolCallAdvisor::builder().build().unwrap())
            .tool(FnTool::new(definition("weather"), |_: Value| async { Ok("sunny") }))
            .tool(ClientSideTool::new(definition("ask")))
    })
}

//! Turns through a chain with memory and tools.

use advisor_chain::{ChatMemoryAdvisor, FnTool, InMemoryStore, ToolDefinition};
use advisor_testkit::{ChatTranscript, Journal, JournalStore, ReplayServer, Reply};
use serde_json::{Value, json};

use crate::Ask;

/// Runs two turns of one conversation. The first one calls two tools at once.
///
/// # Panics
/// If memory does not have the answer before its tools run, or if the second turn does not send the first one.
pub async fn assert_memory_order(ask: Ask) {
    let server = ReplayServer::start(answers()).await.expect("a port");
    let journal = Journal::new();
    let store = JournalStore::new(InMemoryStore::new(), &journal);
    let in_tool = journal.clone();
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let weather =
        FnTool::new(ToolDefinition::new("weather", "Tells the weather.", schema), move |arguments: Value| {
            in_tool.record(format!("tool {}", arguments["city"].as_str().unwrap_or_default()));
            async { Ok("4 degrees") }
        });
    let memory = ChatMemoryAdvisor::new(store);
    let client = advisor_chain::client(ask(&server.url())).advisor(memory).tool(weather).build();
    let client = client.expect("a client");
    let said = async |words: &str| {
        client.prompt().user(words).conversation("c").call().await.expect("an answer").text()
    };
    assert_eq!(said("How is the weather?").await, "Cold everywhere.");
    journal.assert_order(&[
        "stored user",
        "stored assistant(call_1,call_2)*",
        "tool Oslo",
        "stored result(call_1)*",
    ]);
    journal.assert_happens_before("stored assistant(call_1,call_2)*", "tool Rome");
    assert_eq!(said("Thanks.").await, "You are welcome.");
    let sent = server.requests().pop().expect("a third request").json().expect("JSON");
    let messages = sent["messages"].as_array().expect("messages");
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap_or_default()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant", "user"], "{sent:#}");
    assert_eq!(messages[1]["tool_calls"][1]["id"], messages[3]["tool_call_id"], "{sent:#}");
}

fn answers() -> [Reply; 3] {
    let calls = ChatTranscript::new("m")
        .text("Let me look.")
        .tool_call(0, "call_1", "weather", &["{\"city\":", "\"Oslo\"}"])
        .tool_call(1, "call_2", "weather", &["{\"city\":\"Rome\"}"])
        .finish("tool_calls");
    let cold = ChatTranscript::new("m").text("Cold ").text("everywhere.").finish("stop");
    let welcome = ChatTranscript::new("m").text("You are welcome.").finish("stop");
    [calls, cold, welcome].map(|transcript| Reply::sse(transcript.done()))
}

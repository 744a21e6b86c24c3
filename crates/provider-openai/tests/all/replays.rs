//! Tests that replayed answers have the form that a server expects, against requests that real clients sent to
//! real servers.

use advisor_core::{ChatRequest, ChatResponse, Message, ToolResult};
use advisor_test_support::recordings;
use advisor_testkit::{ReplayServer, Reply, answer_of};
use provider_openai::{OpenAiModel, Profile};
use serde_json::Value;

async fn ask(server: &ReplayServer, profile: &Profile, messages: Vec<Message>) -> ChatResponse {
    let model = OpenAiModel::new("m").with_base_url(server.url()).with_profile(profile.clone());
    answer_of(&model, ChatRequest::new(messages)).await.expect("an answer")
}

/// Returns the assistant message that is sent after the recorded answer `first`, and the one that a real client
/// sent.
async fn sent_and_recorded(first: &str, second: &str, profile: Profile) -> Option<(Value, Value)> {
    let recordings = recordings::all("openai-chat");
    let answer = recordings.named(first)?;
    let path = recordings.directory()?.join(format!("{second}.request.json"));
    let recorded: Value = serde_json::from_slice(&std::fs::read(path).expect("the request")).expect("JSON");
    let recorded =
        recorded["messages"].as_array()?.iter().find(|message| message["role"] == "assistant")?.clone();

    let body = || Reply::sse(answer.body.clone());
    let server = ReplayServer::start([body(), body()]).await.expect("a port");
    let response = ask(&server, &profile, vec![Message::user("x")]).await;
    let results =
        response.tool_calls().map(|(_, call)| Message::tool(ToolResult::new(call, vec!["ok".into()])));
    let messages = [Message::user("x"), response.message().clone()].into_iter().chain(results).collect();
    ask(&server, &profile, messages).await;
    let sent = server.requests()[1].json().expect("JSON");
    Some((sent["messages"][1].clone(), recorded))
}

#[tokio::test]
async fn signed_reasoning_is_returned_in_openrouter_form() {
    let Some((sent, recorded)) = sent_and_recorded(
        "openrouter-anthropic-claude-haiku-4-5-reasoning-details-tool-01",
        "openrouter-anthropic-claude-haiku-4-5-text-after-reasoning-tool-01",
        Profile::for_base_url("https://openrouter.ai/api/v1"),
    )
    .await
    else {
        return;
    };
    assert_eq!(sent["reasoning_details"], recorded["reasoning_details"]);
    assert!(
        sent["reasoning_details"][0]["signature"].as_str().is_some_and(|signature| signature.len() > 100)
    );
    let arguments = |message: &Value| {
        message["tool_calls"][0]["function"]["arguments"]
            .as_str()
            .map(str::parse::<Value>)
            .expect("text")
            .expect("JSON")
    };
    assert_eq!(arguments(&sent), arguments(&recorded));
    assert_eq!(sent["tool_calls"][0]["id"], recorded["tool_calls"][0]["id"]);
    // Nothing is said twice.
    assert!(sent.get("reasoning").is_none() && sent.get("reasoning_content").is_none());
}

//! Quirks of what servers accept: the bytes of requests, after answers with quirks and after histories of others.

use WireFamily::{Anthropic, Gemini, Ollama, OpenAiChat, OpenAiResponses};
use advisor_chain::messages::Message;
use advisor_tests::prelude::*;

use crate::quirks::delivery::Delivery;
use crate::quirks::play::{client, model, one_round};
use crate::quirks::transcript::{Transcript, WireFamily};
use crate::transport::ScriptedTransport;

/// Returns the body that a server gets for these messages.
async fn sent(family: WireFamily, profile: Option<&str>, messages: Vec<Message>) -> Value {
    let unanswered = Transcript::unanswered(family, profile);
    let transport = ScriptedTransport::default();
    let model = model(&unanswered, transport.clone());
    let failed = model.stream(ChatRequest::new(messages)).await;
    assert!(failed.is_err(), "nothing answers");
    let [body] = <[Value; 1]>::try_from(transport.requests()).unwrap();
    body
}

/// Plays a transcript to the end of its turn, and returns the request of the next turn.
async fn next_request(family: WireFamily, name: &str) -> Value {
    let transcript = Transcript::all(family).into_iter().find(|transcript| transcript.name == name).unwrap();
    let transport = Delivery::Whole.transport(&transcript);
    let model = one_round(model(&transcript, transport));
    let turn = client(&transcript, model).prompt().user("Hello").call().await.unwrap();
    let messages = turn.transcript.iter().cloned().chain([Message::user("Again")]).collect();
    sent(family, transcript.setting("profile"), messages).await
}

/// A turn that calls the tool `weather` with this id, after some reasoning.
fn turn_with_call(id: &str, reasoning: Option<&str>) -> Vec<Message> {
    let call = ToolCall::new(id, "weather", "{\"city\":\"Oslo\"}");
    let result = ToolResult::new(&call, vec!["sunny".into()]);
    let reasoning = reasoning.map(|text| Block::new(BlockContent::Reasoning(text.to_owned())));
    let blocks = reasoning.into_iter().chain([Block::from(call)]).collect();
    vec![Message::user("Hello"), Message::assistant_blocks(blocks), Message::tool(result)]
}

#[tokio::test]
async fn q21_no_arguments_go_back_as_an_empty_object() {
    let chat = next_request(OpenAiChat, "q21_arguments_null_empty_or_absent").await;
    for call in chat["messages"][1]["tool_calls"].as_array().unwrap() {
        assert_eq!(call["function"]["arguments"], "{}");
    }
    let messages = next_request(Anthropic, "q21_no_input_or_an_empty_piece").await;
    assert_eq!(messages["messages"][1]["content"][0]["input"], json!({}));
    let ollama = next_request(Ollama, "q21_arguments_null_or_absent").await;
    assert_eq!(ollama["messages"][1]["tool_calls"][0]["function"]["arguments"], json!({}));
}

#[tokio::test]
async fn q27_content_beside_calls_has_the_servers_form() {
    for (profile, content) in [("openai", json!(null)), ("openrouter", json!(null)), ("mistral", json!(""))] {
        let body = sent(OpenAiChat, Some(profile), turn_with_call("call_1", None)).await;
        assert_eq!(body["messages"][1].get("content"), Some(&content), "{profile}");
    }
}

#[tokio::test]
async fn q62_arguments_that_are_no_json_go_back_wrapped() {
    let chat = next_request(OpenAiChat, "q62_arguments_that_are_no_json").await;
    let arguments = chat["messages"][1]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
    assert_eq!(arguments, "{\"unparsable_arguments\":\"{city: Oslo}\"}");
    let messages = next_request(Anthropic, "q62_input_that_is_no_json").await;
    let input = json!({"unparsable_arguments": "{\"city\": Oslo,}"});
    assert_eq!(messages["messages"][1]["content"][0]["input"], input);
}

#[tokio::test]
async fn q63_reasoning_goes_back_in_the_field_that_the_server_reads() {
    for (profile, field) in [
        ("deepseek", "reasoning_content"),
        ("llama.cpp", "reasoning_content"),
        ("vllm", "reasoning"),
        ("ollama", "reasoning"),
    ] {
        let body = sent(OpenAiChat, Some(profile), turn_with_call("call_1", Some("Hm."))).await;
        assert_eq!(body["messages"][1][field], "Hm.", "{profile}");
    }
    let body = next_request(OpenAiChat, "q63_reasoning_details_with_a_late_signature").await;
    let detail = json!({"type": "reasoning.text", "text": "They greet me.", "index": 0, "signature": "c2ln"});
    assert_eq!(body["messages"][1]["reasoning_details"], json!([detail]));
}

#[tokio::test]
async fn q64_reasoning_goes_back_never_with_calls_or_always() {
    let has_reasoning = |body: &Value| {
        let message = &body["messages"][1];
        ["reasoning_content", "reasoning"]
            .into_iter()
            .find_map(|field| message.get(field)?.as_str().map(str::to_owned))
    };
    for (profile, with_calls, missing, without_calls) in [
        ("groq", None, None, None),
        ("openai", None, None, None),
        ("mistral", None, None, None),
        ("vllm", Some("Hm."), None, None),
        // DeepSeek refuses calls without the field, even if the model did not reason.
        ("deepseek", Some("Hm."), Some(""), None),
        ("openrouter", Some("Hm."), None, Some("Hm.")),
    ] {
        let said = vec![Block::new(BlockContent::Reasoning("Hm.".to_owned())), Block::text("Good day")];
        let histories = [
            (turn_with_call("call_1", Some("Hm.")), with_calls),
            (turn_with_call("call_1", None), missing),
            (
                vec![Message::user("Hello"), Message::assistant_blocks(said), Message::user("Again")],
                without_calls,
            ),
        ];
        for (messages, expected) in histories {
            let body = sent(OpenAiChat, Some(profile), messages).await;
            assert_eq!(has_reasoning(&body).as_deref(), expected, "{profile}: {}", body["messages"][1]);
        }
    }
}

#[tokio::test]
async fn q66_signature_goes_back_on_its_part_and_calls_in_one_content() {
    let body = next_request(Gemini, "q66_signature_on_the_first_call_only").await;
    let parts = body["contents"][1]["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 2);
    assert_eq!(parts[0]["thoughtSignature"], "c2ln");
    assert_eq!(parts[0]["functionCall"]["name"], "weather");
    assert_eq!((&parts[1]["functionCall"]["name"], parts[1].get("thoughtSignature")), (&json!("time"), None));
    assert_eq!(body["contents"][2]["parts"].as_array().unwrap().len(), 2, "the results are one content, too");

    let body = next_request(Gemini, "q66_signature_on_an_empty_text").await;
    let parts = json!([{"text": "Good day"}, {"text": "", "thoughtSignature": "c2ln"}]);
    assert_eq!(body["contents"][1]["parts"], parts);

    let body = next_request(OpenAiChat, "q66_signature_beside_a_call").await;
    let calls = body["messages"][1]["tool_calls"].as_array().unwrap();
    assert_eq!(calls[0]["extra_content"]["google"]["thought_signature"], "c2ln");
    assert_eq!((calls.len(), calls[1].get("extra_content")), (2, None));
}

/// Whether a server accepts an id.
type Accepts = fn(&str) -> bool;

/// The id of the call and that of its result in a request.
fn ids(family: WireFamily, body: &Value) -> [String; 2] {
    let [call, result] = match family {
        OpenAiChat => [&body["messages"][1]["tool_calls"][0]["id"], &body["messages"][2]["tool_call_id"]],
        OpenAiResponses => [&body["input"][1]["call_id"], &body["input"][2]["call_id"]],
        Anthropic => {
            let content = |at: usize| &body["messages"][at]["content"][0];
            [&content(1)["id"], &content(2)["tool_use_id"]]
        }
        Gemini | Ollama => panic!("no rule for ids"),
    };
    [call, result].map(|id| id.as_str().unwrap_or_else(|| panic!("no id in {body}")).to_owned())
}

#[tokio::test]
async fn q69_ids_have_the_form_that_the_server_accepts() {
    let long = "call_".repeat(20);
    let others = ["functions.weather:0", "functions.weather:1", "a", &long, "call_1|x"];
    let rules: [(WireFamily, Option<&str>, Accepts); 4] = [
        (OpenAiChat, Some("mistral"), |id| {
            id.len() == 9 && id.chars().all(|letter| letter.is_ascii_alphanumeric())
        }),
        (OpenAiChat, Some("openai"), |id| id.len() <= 40),
        (OpenAiResponses, None, |id| id.len() <= 64),
        (Anthropic, None, |id| {
            id.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
        }),
    ];
    for (family, profile, accepts) in rules {
        let mut written = Vec::new();
        for id in others {
            let body = sent(family, profile, turn_with_call(id, None)).await;
            let [call, result] = ids(family, &body);
            assert_eq!(call, result, "{profile:?}: a result names its call");
            assert!(accepts(&call), "{family:?} {profile:?} refuses {call}");
            assert_eq!(
                call == id,
                accepts(id),
                "{family:?}: only an id that is refused is changed: {id}, {call}"
            );
            let again = sent(family, profile, turn_with_call(id, None)).await;
            assert_eq!(ids(family, &again), [call.clone(), result], "the same id in every request");
            written.push(call);
        }
        written.sort();
        written.dedup();
        assert_eq!(
            written.len(),
            others.len(),
            "{family:?} {profile:?}: different ids stay different: {written:?}"
        );
    }
    // Kimi wants its own ids back. A server without a rule gets every id as it is.
    let body = sent(OpenAiChat, None, turn_with_call("functions.weather:0", None)).await;
    assert_eq!(ids(OpenAiChat, &body), ["functions.weather:0", "functions.weather:0"]);
}

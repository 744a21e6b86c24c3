//! Two turns with two tools in parallel: the chunks, the stored transcript, and the requests at the server.

use advisor_chain::messages::Usage;
use advisor_tests::prelude::*;

use super::{Aimock, Api, Sending};
use crate::peers::chain::{Chain, Seen, TOOLS, called, lines};

/// The input, the city and the answer of each turn, as in `fixtures.json`.
const TURNS: [[&str; 3]; 2] = [
    ["How is Paris now?", "Paris", "Paris: 21 °C at 12:00."],
    ["And how is Tokyo?", "Tokyo", "Tokyo: 24 °C at 19:00."],
];

#[tokio::test]
async fn each_api_carries_two_turns_with_parallel_tools() {
    for api in Api::ALL {
        for memory_in in PLACES {
            for streaming in [true, false] {
                let Some(aimock) = Aimock::new() else { return };
                let sending = Sending { streaming, ..Sending::default() };
                let chain = Chain::new(aimock.model(api, sending), api.options(), memory_in);
                let case = format!("{api:?}, streaming {streaming}, memory in {memory_in:?}");
                carries_two_turns(&case, [(api, &chain), (api, &chain)], &aimock).await;
            }
        }
    }
}

#[tokio::test]
async fn each_api_continues_conversation_of_each_other() {
    for first in Api::ALL {
        for second in Api::ALL.into_iter().filter(|second| *second != first) {
            let Some(aimock) = Aimock::new() else { return };
            let model = |api| aimock.model(api, Sending::default());
            let begins = Chain::new(model(first), ChatOptions::default(), Phase::Round);
            let continues = begins.continued_by(model(second));
            let case = format!("{first:?}, then {second:?}");
            carries_two_turns(&case, [(first, &begins), (second, &continues)], &aimock).await;
        }
    }
}

/// Holds one turn with each of these chains, which share a memory.
async fn carries_two_turns(case: &str, chains: [(Api, &Chain); 2], aimock: &Aimock) {
    for ((api, chain), [question, city, answer]) in chains.into_iter().zip(TURNS) {
        let seen = chain.turn(question).await;
        shows_calls_and_answer(case, api, &seen, city, answer);
        assert_eq!(chain.most_running(), TOOLS.len(), "{case}: the calls of a round run at once");
    }

    let all: Vec<_> = TURNS.into_iter().flat_map(conversation).collect();
    let stored = chains[1].1.stored().await;
    assert_eq!(stored.iter().flat_map(lines).collect::<Vec<_>>(), all, "{case}");
    let mut ids: Vec<_> =
        stored.iter().flat_map(|message| message.tool_calls()).map(|call| &call.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), TURNS.len() * TOOLS.len(), "{case}: no two calls share an id");

    // The request of a round holds everything before it: the second turn's hold the first turn.
    let requests = aimock.requests().await;
    let lengths = [1, 6, 8, 13];
    assert_eq!(requests.len(), lengths.len(), "{case}");
    for (request, length) in requests.iter().zip(lengths) {
        assert_eq!(received(&request["body"]), all[..length], "{case}");
        let tools: Vec<_> = request["body"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["function"]["name"])
            .collect();
        assert_eq!(tools, TOOLS, "{case}");
    }
}

/// Checks the chunks of a turn.
fn shows_calls_and_answer(case: &str, api: Api, seen: &Seen, city: &str, answer: &str) {
    let response = seen.response();
    assert_eq!(
        (response.text(), &response.finish.reason),
        (answer.to_owned(), &FinishReason::Stop),
        "{case}"
    );
    assert_eq!(seen.opened, TOOLS, "{case}");
    let mut results = seen.results.clone();
    results.sort_unstable();
    assert_eq!(results, [format!("get_time of {city}"), format!("get_weather of {city}")], "{case}");

    let [round] = seen.rounds.as_slice() else { panic!("{case}: {:?}", seen.rounds) };
    let kinds: Vec<_> =
        seen.fold.blocks(round.round()).iter().map(|(_, block)| block.content().kind()).collect();
    // The mock of Ollama writes reasoning under a name that Ollama does not use, and counts no tokens.
    let (reasoning, input, output) = match api {
        Api::Ollama => (vec![], 0, 0),
        // Two blocks: one of them sealed.
        Api::Messages => (vec![BlockKind::Opaque, BlockKind::Reasoning], 90, 30),
        _ => (vec![BlockKind::Reasoning], 90, 30),
    };
    let expected = [reasoning, vec![BlockKind::Text, BlockKind::ToolCall, BlockKind::ToolCall]].concat();
    assert_eq!(kinds, expected, "{case}");
    let usage = response.usage.map(|Usage { input_tokens, output_tokens, .. }| (input_tokens, output_tokens));
    assert_eq!(usage, Some((Some(input), Some(output))), "{case}: the sum of both rounds");
}

/// Writes a turn as the lines of its messages.
fn conversation([question, city, answer]: [&str; 3]) -> Vec<String> {
    let call = |name| format!("call: {name} of {city}");
    let result = |name| format!("result: {name} of {city}");
    let mut lines = vec![format!("user: {question}"), format!("model: Let me look at {city} — déjà 東京.")];
    lines.extend(TOOLS.map(call));
    lines.extend(TOOLS.map(result));
    lines.push(format!("model: {answer}"));
    lines
}

/// Writes the messages that the server received as such lines, and checks the ids of results.
fn received(body: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut unanswered = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        let text = text_of(&message["content"]);
        match message["role"].as_str().unwrap() {
            "user" => lines.push(format!("user: {text}")),
            "assistant" => {
                lines.extend(Some(text).filter(|text| !text.is_empty()).map(|text| format!("model: {text}")));
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let function = &call["function"];
                    let arguments = function["arguments"].as_str().unwrap();
                    lines.push(called(function["name"].as_str().unwrap(), arguments));
                    unanswered.push(call["id"].clone());
                }
            }
            "tool" => {
                let call = unanswered.remove(0);
                // Ollama's API has no ids.
                assert!(matches!(&message["tool_call_id"], id if id.is_null() || *id == call), "{body}");
                lines.push(format!("result: {text}"));
            }
            role => panic!("a message of {role}: {body}"),
        }
    }
    lines
}

/// Returns the text of a message. Gemini's results are objects with one member.
fn text_of(content: &Value) -> String {
    if let Some(parts) = content.as_array() {
        return parts.iter().map(|part| part["text"].as_str().unwrap()).collect();
    }
    let text = content.as_str().unwrap_or_default();
    let object: Option<serde_json::Map<String, Value>> = serde_json::from_str(text).ok();
    let member = object.and_then(|object| object.values().next()?.as_str().map(str::to_owned));
    member.unwrap_or_else(|| text.to_owned())
}

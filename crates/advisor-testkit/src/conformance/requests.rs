//! Clauses about what is sent.

use advisor_core::{FinishReason, Message, MessageList, ToolResult};

use super::family::AnswerPart::{Call, End, Finish, Text};
use super::family::WireFamily;
use super::run::{chain, question, reply, request, server, within};

/// The next request of a turn sends the answer with its calls and the results, each result once and in call order.
pub async fn tool_results_are_sent_back(family: &dyn WireFamily) {
    let call = |id, arguments| Call { id, name: "weather", arguments };
    let calls = [
        Text("Let me look."),
        call("call_oslo_1", &["{\"city\":\"Oslo\"}"]),
        call("call_rome_1", &["{\"city\":\"Rome\"}"]),
        Finish(FinishReason::ToolCalls),
        End,
    ];
    let answer = [Text("Cold and warm."), Finish(FinishReason::Stop), End];
    let server = server([reply(family, &calls), reply(family, &answer)]).await;
    let chain = chain(family, &server);
    let first = within("the calls", chain.next_call(question())).await.expect("an answer with calls");
    let mut messages = MessageList::from(vec![Message::user("Hello"), first.message().clone()]);
    for ((_, call), words) in first.tool_calls().zip(["4 degrees", "31 degrees"]) {
        messages.push(Message::tool(ToolResult::new(call, vec![words.into()])));
    }
    let second =
        within("the answer", chain.next_call(request(messages))).await.expect("an answer to the results");
    assert_eq!(second.text(), "Cold and warm.");
    let sent = server.requests().pop().expect("the second request").body;
    let sent = String::from_utf8_lossy(&sent);
    let at = |words: &str| sent.find(words).unwrap_or_else(|| panic!("`{words}` is missing: {sent}"));
    let (said, results) = (at("Let me look.").max(at("Rome")), [at("4 degrees"), at("31 degrees")]);
    assert!(at("Oslo") < at("Rome"), "the calls are in order: {sent}");
    assert!(said < results[0] && results[0] < results[1], "the results follow, in call order: {sent}");
    for words in ["4 degrees", "31 degrees"] {
        assert_eq!(sent.matches(&format!("\"{words}")).count(), 1, "`{words}` is sent once: {sent}");
    }
}

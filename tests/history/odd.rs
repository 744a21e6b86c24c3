//! Answers of which a provider can send little or nothing back.

use advisor_chain::messages::{
    Block, BlockContent, Citation, Media, Opaque, ProviderData, ToolCall, ToolResult,
};
use advisor_chain::{ChatRequest, Message, Role};
use serde_json::json;

use crate::targets::{Item, Target};
use crate::transport::ScriptedTransport;

const AUTHORS: [Role; 11] = [
    Role::User,
    Role::Assistant,
    Role::User,
    Role::Assistant,
    Role::User,
    Role::Assistant,
    Role::User,
    Role::Assistant,
    Role::Tool,
    Role::Assistant,
    Role::User,
];

fn conversation() -> Vec<Message> {
    let hidden = |value: &str| json!({"hidden": value});
    let data = vec![ProviderData::new("elsewhere", hidden("data"))];
    let searched = BlockContent::Opaque(Opaque::new("elsewhere", "web_search", hidden("search")));
    let picture = BlockContent::Media(Media::from_bytes("image/png", vec![1, 2, 3]));
    // The answer was cut in the arguments.
    let cut = ToolCall::new("call_1", "look", "{\"at\":\"the");
    let result = ToolResult::error(&cut, "The arguments are no JSON.");
    let answer =
        |blocks: Vec<BlockContent>| Message::assistant_blocks(blocks.into_iter().map(Block::new).collect());
    vec![
        Message::user("Search."),
        answer(vec![searched]),
        Message::user("Draw."),
        answer(vec![picture]),
        Message::user("Cite."),
        answer(vec![
            BlockContent::Text(" ".into()),
            BlockContent::Citation(Citation::default()),
            BlockContent::Text("Yes.".into()),
        ]),
        Message::user("Look."),
        Message::assistant_blocks(vec![
            Block::with_data(BlockContent::Text(String::new()), data),
            Block::new(BlockContent::ToolCall(cut)),
        ]),
        Message::tool(result),
        Message::assistant("I could not."),
        Message::user("And now?"),
    ]
}

/// Sends the conversation to the target, and checks that it gets every answer, none of them empty.
pub async fn sent_to(target: &Target) {
    let transport = ScriptedTransport::default();
    // The answer is none; only the request matters.
    let _answer = (target.model)(transport.clone()).stream(ChatRequest::new(conversation())).await;
    let body = transport.requests().pop().expect("a request");
    let items = (target.read)(&body);
    let authors: Vec<Role> = items.iter().map(|item| item.role).collect();
    assert_eq!(authors, AUTHORS, "{}: {body:#}", target.name);
    let is_empty =
        |item: &&Item| item.text.trim().is_empty() && item.calls.is_empty() && item.pictures.is_empty();
    assert_eq!(items.iter().find(is_empty).map(|item| &item.wire), None, "{}", target.name);
    let texts: Vec<&str> = [5, 9].map(|at| items[at].text.trim()).into();
    assert_eq!(texts, ["Yes.", "I could not."], "{}", target.name);
    let [call] = items[7].calls.as_slice() else { panic!("{}: {:#}", target.name, items[7].wire) };
    assert_eq!(call.arguments, json!({"unparsable_arguments": "{\"at\":\"the"}), "{}", target.name);
    assert!(!body.to_string().contains("hidden"), "{}: {body:#}", target.name);
}

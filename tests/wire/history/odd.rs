//! Answers of which a provider can send little or nothing back, and failures of tools that say little or nothing.

use advisor_chain::messages::{Citation, Opaque, ProviderData};
use advisor_tests::prelude::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::history::targets::{Item, Target};
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

/// Returns the request with these messages that the target sends.
async fn body_of(target: &Target, messages: Vec<Message>) -> Value {
    let transport = ScriptedTransport::default();
    // The answer is none; only the request matters.
    let _answer = (target.model)(transport.clone()).stream(ChatRequest::new(messages)).await;
    transport.requests().pop().expect("a request")
}

/// Sends the conversation to the target, and checks that it gets every answer, none of them empty.
pub(crate) async fn sent_to(target: &Target) {
    let body = body_of(target, conversation()).await;
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

/// Continues an answer of Ollama with pictures of any type, which its server does not name. Checks that the target gets
/// a picture of a type that it reads, or a note about it.
pub(crate) async fn pictures_sent_to(target: &Target) {
    let bytes: [&[u8]; 2] = [b"BM\x1e\0\0\0", &[1, 2, 3]];
    let images = bytes.map(|bytes| STANDARD.encode(bytes));
    let line = json!({"message": {"role": "assistant", "content": "", "images": images}, "done": true});
    let answers = ScriptedTransport::new([format!("{line}\n")]);
    let model = OllamaModel::new("painter").with_transport(answers);
    let question = ChatRequest::new(vec![Message::user("Draw.")]);
    let chain = ChatClient::builder(model).build().expect("a chain").chain().clone();
    let answer = chain.next_call(question).await.expect("an answer");
    let types: Vec<_> = answer.message().blocks().iter().map(|block| block.content().clone()).collect();
    let media = |mime: &str, bytes: &'static [u8]| BlockContent::Media(Media::from_bytes(mime, bytes));
    assert_eq!(types, [media("image/bmp", bytes[0]), media("application/octet-stream", bytes[1])]);
    let messages = vec![Message::user("Draw."), answer.message().clone(), Message::user("And now?")];
    let body = body_of(target, messages).await;
    let items = (target.read)(&body);
    let authors: Vec<Role> = items.iter().map(|item| item.role).collect();
    assert_eq!(authors, [Role::User, Role::Assistant, Role::User], "{}: {body:#}", target.name);
    assert!(!items[1].text.trim().is_empty(), "{}: {body:#}", target.name);
    assert!(items[1].pictures.is_empty(), "{}: {body:#}", target.name);
}

/// Sends failures without text, with a picture alone, and with a picture beside text. Checks that the model sees each
/// failure as text, marked as a failure where the API has a mark, and each picture or a note about it.
pub(crate) async fn failures_sent_to(target: &Target) {
    let picture = || Part::Image(Media::from_bytes("image/png", vec![1, 2, 3]));
    let silent = "[the tool failed without a message]";
    let failures: [(Vec<Part>, &str); 5] = [
        (vec![], silent),
        (vec![" \n".into()], silent),
        (vec![picture()], silent),
        (vec![picture(), "It is dark.".into()], "It is dark."),
        (vec![json!({"code": 7}).into()], r#"{"code":7}"#),
    ];
    let calls: Vec<_> =
        (0..failures.len()).map(|n| ToolCall::new(format!("call_{n}"), "look", "{}")).collect();
    let result = |(call, (parts, _)): (&ToolCall, &(Vec<Part>, &str))| {
        let mut result = ToolResult::new(call, parts.clone());
        result.is_error = true;
        Message::tool(result)
    };
    let asked =
        [Message::user("Look."), Message::assistant_blocks(calls.iter().cloned().map(Block::from).collect())];
    let messages = asked.into_iter().chain(calls.iter().zip(&failures).map(result)).collect();
    let body = body_of(target, messages).await;
    let items: Vec<_> = (target.read)(&body).into_iter().filter(|item| item.role == Role::Tool).collect();
    assert_eq!(items.len(), failures.len(), "{}: {body:#}", target.name);
    for (item, (parts, text)) in items.iter().zip(failures) {
        assert!(item.text.contains(text), "{}: {:#}", target.name, item.wire);
        let note = "[image/png left out";
        let has_picture = item.pictures == ["AQID"] || item.text.contains(note);
        assert_eq!(has_picture, parts.contains(&picture()), "{}: {:#}", target.name, item.wire);
        let mark = target.name.starts_with("Messages").then_some(&Value::Bool(true));
        assert_eq!(item.wire.get("is_error"), mark, "{}: {:#}", target.name, item.wire);
        let response = item.wire.pointer("/functionResponse/response");
        assert!(
            response.is_none_or(|response| response["error"].is_string()),
            "{}: {:#}",
            target.name,
            item.wire
        );
    }
}

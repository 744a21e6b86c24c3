//! One conversation, and what a request after it has to say.

use advisor_chain::memory::store::{export, import};
use advisor_tests::prelude::*;

use crate::history::origins::Origin;
use crate::history::targets::Target;
use crate::transport::ScriptedTransport;

pub(crate) const SYSTEM: &str = "You guard a house.";
pub(crate) const QUESTION: &str = "What is behind the door?";
pub(crate) const THOUGHT: &str = "I should look.";
pub(crate) const TEXT: &str = "I will look.";
pub(crate) const CAT: &str = "A cat.";
pub(crate) const DRAWN: &str = "Drawn.";
pub(crate) const LOCKED: &str = "The door is locked.";
pub(crate) const ANSWER: &str = "A cat sits there.";
pub(crate) const DEMAND: &str = "Open it by force.";
/// The beginning of an answer that the model refused to complete, that a filter stopped, or that was cut.
pub(crate) const REFUSAL: &str = "I will not open it.";
pub(crate) const NEXT: &str = "And now?";
/// The pictures of the user and of the tool, in base64.
pub(crate) const PICTURE: &str = "AQID";
pub(crate) const DRAWING: &str = "CQgH";

/// The calls of the first and the second round: names, and arguments as JSON.
pub(crate) const CALLS: [[(&str, &str); 2]; 2] = [
    [("look", r#"{"at":"the door"}"#), ("clock.now", "{}")],
    [("draw", "{}"), ("open", r#"{"key":"none"}"#)],
];

/// What has to be said in this order: the author and the text, or a part of it.
pub(crate) const SAID: [(Role, &str); 11] = [
    (Role::User, QUESTION),
    (Role::Assistant, TEXT),
    (Role::Tool, CAT),
    (Role::Tool, r#"{"hour":12}"#),
    (Role::Assistant, ""),
    (Role::Tool, DRAWN),
    (Role::Tool, LOCKED),
    (Role::Assistant, ANSWER),
    (Role::User, DEMAND),
    (Role::Assistant, REFUSAL),
    (Role::User, NEXT),
];

pub(crate) fn definitions() -> [ToolDefinition; 4] {
    let schema = |property: &str| json!({"type": "object", "properties": {property: {"type": "string"}}});
    let nothing = || json!({"type": "object", "properties": {}});
    [
        ToolDefinition::new("look", "Looks at something.", schema("at")),
        // No provider but Ollama takes this name.
        ToolDefinition::new("clock.now", "Tells the time.", nothing()),
        ToolDefinition::new("draw", "Draws what it sees.", nothing()),
        ToolDefinition::new("open", "Opens the door.", schema("key")),
    ]
}

fn media(bytes: [u8; 3]) -> Part {
    Part::Image(Media::from_bytes("image/png", bytes.to_vec()))
}

fn tools() -> [FnTool; 4] {
    let [look, now, draw, open] = definitions();
    [
        FnTool::new(look, |_: Value| async { Ok(CAT) }),
        FnTool::new(now, |_: Value| async { Ok(ToolOutput::from(json!({"hour": 12}))) }),
        FnTool::new(draw, |_: Value| async { Ok(vec![Part::from(DRAWN), media([9, 8, 7])]) }),
        FnTool::new(open, |_: Value| async { Err::<&str, _>(ToolError::new(LOCKED)) }),
    ]
}

fn client(model: Arc<dyn ChatModel>, store: &Arc<InMemoryStore>, in_text: Option<TextFormat>) -> ChatClient {
    let builder = ChatClient::builder(model)
        .system(SYSTEM)
        .advisor(ToolCallAdvisor::new())
        .advisor(ChatMemoryAdvisor::new(Arc::clone(store)));
    let builder = tools().into_iter().fold(builder, |builder, tool| builder.tool(tool));
    let builder =
        in_text.into_iter().fold(builder, |builder, format| builder.advisor(TextToolCalls::new(format)));
    builder.build().expect("a client")
}

/// Lets the origin begin the conversation: a turn of three rounds, and one that it refuses. Returns it as exported.
pub(crate) async fn begun_with(origin: &Origin) -> String {
    let (transport, store) = (ScriptedTransport::new((origin.answers)()), Arc::new(InMemoryStore::new()));
    let client = client((origin.model)(transport.clone()), &store, origin.in_text);
    let question = vec![Part::from(QUESTION), media([1, 2, 3])];
    let answer = client
        .prompt()
        .messages([Message::user_parts(question)])
        .conversation("c")
        .call()
        .await
        .expect("an answer");
    assert_eq!(answer.text(), ANSWER, "{}", origin.name);
    let refusal = client.prompt().user(DEMAND).conversation("c").call().await.expect("an answer");
    assert!(refusal.message().blocks().len() == 1, "{}: {:?}", origin.name, refusal.message());
    assert_eq!(transport.requests().len(), 4, "{}", origin.name);
    let key = ConversationKey::new("c").expect("a key");
    export(store, key).try_collect().await.expect("an export")
}

/// Continues an exported conversation with the target. Returns the request that it sent.
pub(crate) async fn continued_with(target: &Target, conversation: &str) -> Value {
    let (transport, store) =
        (ScriptedTransport::new([(target.answer)("Noted.")]), Arc::new(InMemoryStore::new()));
    import(&*store, conversation.as_bytes(), None).await.expect("an import");
    let client = client((target.model)(transport.clone()), &store, target.in_text);
    let answer = client.prompt().user(NEXT).conversation("c").call().await.expect("an answer");
    assert_eq!(answer.text(), "Noted.", "{}", target.name);
    let [request] = <[Value; 1]>::try_from(transport.requests()).expect("one request");
    request
}

//! A policy leaves requests as they are; `ChatRequest::map_user_text` edits the user's text.

use advisor_core::{
    AdvisorChain, ChatRequest, FinishReason, Message, MessageList, Part, ToolCall, ToolResult,
};
use advisor_testkit::{Answer, ScriptedModel};
use common_advisors::policy::ReplaceText;

/// A policy leaves requests as they are. [`ChatRequest::map_user_text`] edits strings and parts of the user alone.
#[tokio::test]
async fn user_text_of_requests_is_edited_by_its_own_method() {
    let messages = vec![
        Message::system("Mallory"),
        Message::tool(ToolResult::new(&ToolCall::new("c1", "look", "{}"), vec!["Mallory".into()])),
        Message::user("Mallory"),
        Message::user_parts(vec![Part::from("Mallory"), Part::from("and Mallory")]),
    ];
    let model = ScriptedModel::new([Answer::new().text("Mallory").finish(FinishReason::Stop)]);
    let policy = ReplaceText::new([("Mallory", "[name]")]);
    let chain = AdvisorChain::builder(model.clone()).advisor(policy).build().unwrap();
    let request = ChatRequest::new(messages);
    chain.next_call(request.clone()).await.unwrap();
    let texts = |messages: &MessageList| -> Vec<String> { messages.iter().map(Message::text).collect() };
    assert_eq!(texts(&model.prompts()[0].messages), texts(&request.messages));
    let edited = request.map_user_text(|text| text.replace("Mallory", "[name]"));
    assert_eq!(texts(&edited.messages), ["Mallory", "Mallory", "[name]", "[name]and [name]"]);
}

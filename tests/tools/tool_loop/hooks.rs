//! Tests of the changes that hooks can make, and of how long they last: requests, next messages, and the course
//! of the loop.

use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// Two tool rounds and an answer.
fn three_rounds() -> ScriptedModel {
    ScriptedModel::new([
        Answer::from_calls([("c1", "look", "{}")]),
        Answer::from_calls([("c2", "look", "{}")]),
        Answer::from_text("Done."),
    ])
}

fn hooked(hooks: impl LoopHooks) -> ToolCallAdvisor {
    ToolCallAdvisor::builder().hooks(hooks).build().unwrap()
}

fn sent(model: &ScriptedModel) -> Vec<Vec<String>> {
    model.prompts().iter().map(|prompt| transcript_lines(&prompt.messages)).collect()
}

/// Adds things at the start or before the second round.
struct Adding {
    at_start: bool,
}

impl Adding {
    fn add(&self, mut request: ChatRequest, now: bool) -> ChatRequest {
        if !now {
            return request;
        }
        request.options.temperature = Some(0.5);
        request.tools = request.tools.with(tool("added", "from the hook"));
        request.with_message(Message::user("Hurry."))
    }
}

#[async_trait]
impl LoopHooks for Adding {
    async fn loop_start(&self, request: ChatRequest) -> Result<ChatRequest> {
        Ok(self.add(request, self.at_start))
    }

    async fn before_round(&self, request: ChatRequest, round: u32) -> Result<ChatRequest> {
        Ok(self.add(request, !self.at_start && round == 2))
    }
}

/// Messages, options and tools that a hook adds stay for all later rounds.
#[tokio::test]
async fn hook_additions_survive_all_rounds() {
    for at_start in [true, false] {
        let model = ScriptedModel::new([
            Answer::from_calls([("c1", "look", "{}")]),
            Answer::from_calls([("c2", "added", "{}")]),
            Answer::from_calls([("c3", "added", "{}")]),
            Answer::from_text("Done."),
        ]);
        let ledger = Ledger::default();
        let client =
            client(&model, hooked(Adding { at_start })).advisor(ledger.clone()).tool(tool("look", "sunny"));
        let response = client.build().unwrap().prompt().user("go").call().await.unwrap();
        let first = if at_start { 0 } else { 1 };
        for (round, prompt) in model.prompts().iter().enumerate() {
            let added = round >= first;
            assert_eq!(prompt.options.temperature, added.then_some(0.5), "round {round}");
            assert_eq!(prompt.tools.contains(&String::from("added")), added, "round {round}");
            let hurries = prompt.messages.iter().filter(|message| message.text() == "Hurry.").count();
            assert_eq!(hurries, usize::from(added), "round {round}");
        }
        let mut expected = vec![
            "user: go", "call c1 look {}", "result c1: sunny", "call c2 added {}",
            "result c2: from the hook", "call c3 added {}", "result c3: from the hook", "assistant: Done.",
        ];
        expected.insert(if at_start { 1 } else { 3 }, "user: Hurry.");
        assert_eq!(transcript_lines(&response.transcript), expected);
        assert_eq!(ledger.transcript(), response.transcript, "and it is recorded");
        let injected: Vec<_> =
            ledger.records().into_iter().filter(|record| record.step == Step::Injected).collect();
        assert_eq!(injected.iter().map(|record| record.round).collect::<Vec<_>>(), [2 * first as u32]);
    }
}

/// Adds messages of three kinds after the first tools.
struct Reminding;

#[async_trait]
impl LoopHooks for Reminding {
    async fn next_messages(&self, mut next: MessageList, results: &[Message]) -> Result<MessageList> {
        if results[0].tool_result().unwrap().call_id == "c1" {
            next.push(Message::user("Remember me."));
            next.push(Message::user("Forget me.").ephemeral());
            next.push(Message::system("Obey."));
        }
        Ok(next)
    }
}

/// Messages of `next_messages` are sent in all later rounds. Memory stores them unless they are ephemeral or
/// system messages.
#[tokio::test]
async fn added_messages_persist_in_later_rounds_unless_ephemeral() {
    let model = three_rounds();
    let ledger = Ledger::default();
    let client = client(&model, hooked(Reminding)).advisor(ledger.clone()).tool(tool("look", "sunny"));
    let response = client.build().unwrap().prompt().user("go").call().await.unwrap();
    let added = ["user: Remember me.", "user: Forget me.", "system: Obey."];
    let sent = sent(&model);
    assert_eq!(sent[1][3..], added);
    assert_eq!(sent[2][3..6], added);
    assert_eq!(
        transcript_lines(&response.transcript)[3..],
        ["user: Remember me.", "call c2 look {}", "result c2: sunny", "assistant: Done."]
    );
    assert_eq!(ledger.transcript(), response.transcript);
}

/// Sends other results than the tools gave, and an example of a call with its result.
struct Rewriting;

#[async_trait]
impl LoopHooks for Rewriting {
    async fn loop_start(&self, request: ChatRequest) -> Result<ChatRequest> {
        let call = ToolCall::new("example", "look", "{}");
        let result = ToolResult::new(&call, vec!["cloudy".into()]);
        let example = [Message::assistant_blocks(vec![call.into()]), Message::tool(result)];
        Ok(example.into_iter().fold(request, ChatRequest::with_message))
    }

    async fn next_messages(&self, next: MessageList, results: &[Message]) -> Result<MessageList> {
        let shortened = |message: &Message| match message.tool_result() {
            Some(result) if results.iter().any(|new| new.is_same(message)) => {
                let call = ToolCall::new(result.call_id.clone(), result.name.clone(), "");
                Message::tool(ToolResult::new(&call, vec!["…".into()]))
            }
            _ => message.clone(),
        };
        Ok(next.iter().map(shortened).collect())
    }
}

/// Results that a hook rewrites are sent in this form; the transcript keeps the original results, each once.
#[tokio::test]
async fn law_m1_rewritten_results_are_sent_but_not_remembered() {
    for memory in PLACES {
        let model = three_rounds();
        let ledger = Ledger::default();
        let remembers = ChatMemoryAdvisor::new(InMemoryStore::new());
        let client = client(&model, hooked(Rewriting))
            .advisor(ledger.clone())
            .advisor_in(memory, remembers.clone())
            .tool(tool("look", "sunny"))
            .build()
            .unwrap();
        let response = client.prompt().user("go").conversation("c").call().await.unwrap();
        assert_valid(&response.transcript);
        let lines = transcript_lines(&response.transcript);
        assert_eq!(lines[1..3], ["call example look {}", "result example: cloudy"]);
        assert_eq!(lines[3..5], ["call c1 look {}", "result c1: sunny"], "{memory:?}");
        assert_eq!(ledger.transcript(), response.transcript, "{memory:?}");
        let key = ConversationKey::new("c").unwrap();
        assert_eq!(transcript_lines(&remembers.transcript(&key).await.unwrap()), lines, "{memory:?}");
        if memory == Phase::Turn {
            assert_eq!(sent(&model)[2][4], "result c1: …");
        }
    }
}

/// A forced call is asked for once; otherwise the turn would never end.
#[tokio::test]
async fn forced_tool_choice_resets_after_first_tools() {
    let forced = |choice: Option<ToolChoice>| async move {
        let model = ScriptedModel::new([
            Answer::new().text("…").finish(FinishReason::Paused),
            Answer::from_calls([("c1", "look", "{}")]),
            Answer::from_calls([("c2", "look", "{}")]),
            Answer::from_text("Done."),
        ]);
        let options = ChatOptions { tool_choice: choice, ..ChatOptions::default() };
        let client = client(&model, ToolCallAdvisor::new()).tool(tool("look", "sunny")).options(options);
        client.build().unwrap().prompt().user("go").call().await.unwrap();
        model.prompts().into_iter().map(|prompt| prompt.options.tool_choice).collect::<Vec<_>>()
    };
    let auto = || Some(ToolChoice::Auto);
    for choice in [ToolChoice::Required, ToolChoice::Tool("look".into())] {
        let choice = Some(choice);
        assert_eq!(forced(choice.clone()).await, [choice.clone(), choice, auto(), auto()]);
    }
    for choice in [None, auto()] {
        assert_eq!(forced(choice.clone()).await, [choice.clone(), choice.clone(), choice.clone(), choice]);
    }
}

//! Tool calls in the text of a model: run, remembered and sent again as those of an interface are.

use advisor_chain::chain::ResponseFormat;
use advisor_chain::text_tool_calls::{Leaks, ParserLimits, TextFormat, TextTools, ToolCallFormat, ToolForm};
use advisor_tests::prelude::*;

fn look() -> ToolDefinition {
    let schema = json!({
        "type": "object",
        "properties": {"at": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["at"],
    });
    ToolDefinition::new("look", "Looks at something.", schema)
}

/// A call of `look` as the model writes it.
fn call(format: TextFormat, arguments: &str) -> String {
    TextTools::new([&look()]).call(format, "look", arguments)
}

struct Setting {
    client: ChatClient,
    model: ScriptedModel,
    memory: ChatMemoryAdvisor,
    /// The arguments of each run of the tool.
    runs: Arc<Mutex<Vec<Value>>>,
}

/// A chain with memory in this phase, and this advisor beside the model.
fn setting(
    answers: impl IntoIterator<Item = Answer>,
    remembers: Phase,
    in_text: Option<TextToolCalls>,
) -> Setting {
    with_memory(answers, remembers, in_text, ChatMemoryAdvisor::new(InMemoryStore::new()))
}

fn with_memory(
    answers: impl IntoIterator<Item = Answer>,
    remembers: Phase,
    in_text: Option<TextToolCalls>,
    memory: ChatMemoryAdvisor,
) -> Setting {
    let (model, runs) = (ScriptedModel::new(answers), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&runs);
    let tool = FnTool::new(look(), move |arguments: Value| {
        noted.lock().unwrap().push(arguments);
        async { Ok("a <house>") }
    });
    let builder = ChatClient::builder(model.clone())
        .advisor(ToolCallAdvisor::builder().stream_tool_call_responses(true).build().unwrap())
        .advisor_in(remembers, memory.clone())
        .tool(tool);
    let builder = match in_text {
        Some(advisor) => builder.advisor(advisor),
        None => builder,
    };
    Setting { client: builder.build().unwrap(), model, memory, runs }
}

impl Setting {
    fn turn(&self, text: &str) -> TurnStream {
        self.client.prompt().user(text).conversation("c").stream()
    }

    fn runs(&self) -> Vec<Value> {
        self.runs.lock().unwrap().clone()
    }

    async fn remembered(&self) -> Vec<Message> {
        let transcript = self.memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(validate_transcript(&transcript), [], "{transcript:?}");
        transcript.iter().cloned().collect()
    }
}

async fn chunks(mut turn: TurnStream) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    while let Some(chunk) = turn.next().await {
        chunks.push(chunk.unwrap());
    }
    chunks
}

fn in_text(format: TextFormat) -> Option<TextToolCalls> {
    Some(TextToolCalls::new(format))
}

#[tokio::test]
async fn law_m4_t1_calls_in_text_are_run_and_remembered() {
    for remembers in PLACES {
        for format in TextFormat::ALL {
            let written = call(format, "{\"at\": \"a & b\", \"days\": 3}");
            let answers =
                [Answer::from_text(format!("Let me see.\n{written}\n")), Answer::from_text("A house.")];
            let setting = setting(answers, remembers, in_text(format));
            let chunks = chunks(setting.turn("What is there?")).await;
            assert_eq!(setting.runs(), [json!({"at": "a & b", "days": 3})], "{format:?}");

            let messages = setting.remembered().await;
            let roles: Vec<_> = messages.iter().map(Message::role).collect();
            assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
            let asked = messages[1].tool_calls().next().unwrap();
            assert_eq!((messages[1].text().as_str(), asked.name.as_str()), ("Let me see.\n", "look"));
            assert!(!asked.id.is_empty() && messages[2].tool_result().unwrap().call_id == asked.id);

            let first_round = chunks.iter().find_map(|chunk| match chunk {
                Chunk::RoundCompleted(response) => Some(response.finish.reason.clone()),
                _ => None,
            });
            assert_eq!(first_round, Some(FinishReason::ToolCalls));
        }
    }
}

#[tokio::test]
async fn request_describes_tools_in_words_and_history_as_text() {
    for remembers in PLACES {
        for format in TextFormat::ALL {
            let written = call(format, "{\"at\": \"x\"}");
            let answers =
                [Answer::from_text(written.clone()), Answer::from_text("A."), Answer::from_text("B.")];
            let setting = setting(answers, remembers, in_text(format));
            chunks(setting.turn("One?")).await;
            chunks(setting.turn("Two?")).await;
            for prompt in setting.model.prompts() {
                assert!(prompt.tools.is_empty(), "the interface describes no tool");
                let first = prompt.messages.iter().next().unwrap();
                assert!(first.role() == Role::System && first.text().contains("## look"), "{format:?}");
                assert!(!prompt.messages.iter().any(|message| message.role() == Role::Tool));
            }
            let prompts = setting.model.prompts();
            let said: Vec<_> =
                prompts[2].messages.iter().skip(1).map(|message| (message.role(), message.text())).collect();
            assert_eq!(said[1], (Role::Assistant, written), "a call goes back as it was written");
            assert!(
                said[2].0 == Role::User
                    && said[2].1.contains("a <house>")
                    && said[2].1.contains("tool_result")
            );
            assert_eq!(said[3..], [(Role::Assistant, "A.".to_owned()), (Role::User, "Two?".to_owned())]);
        }
    }
}

#[tokio::test]
async fn law_s2_arguments_stream_while_they_are_written() {
    let gate = Gate::new();
    let answer = Answer::new()
        .text("<tool name=\"look\"><arg name=\"at\">the gre")
        .gate(&gate)
        .text("at wall</arg></tool>");
    let form = ToolForm::new("look", "at").with_verbatim_body("", "");
    let setting = setting(
        [answer.finish(FinishReason::Stop), Answer::from_text("C")],
        Phase::Round,
        Some(TextToolCalls { forms: vec![form], ..TextToolCalls::new(TextFormat::Xml) }),
    );
    let mut turn = setting.turn("Go.");
    let mut arguments = String::new();
    while arguments != "{\"at\":\"the gre" {
        if let Chunk::Delta { delta: BlockDelta::Arguments(piece), .. } = turn.next().await.unwrap().unwrap()
        {
            arguments.push_str(&piece);
        }
    }
    gate.release();
    chunks(turn).await;
    assert_eq!(setting.runs(), [json!({"at": "the great wall"})]);
}

#[tokio::test]
async fn conversation_changes_between_text_and_interface() {
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    for remembers in PLACES {
        for advisor in [None, in_text(TextFormat::Xml), in_text(TextFormat::Json), None] {
            let first = match advisor {
                Some(_) => Answer::from_text(format!(
                    "{}{}",
                    call(TextFormat::Xml, "{\"at\": \"x\"}"),
                    "{\"tool\": {\"function\": \"look\", \"parameters\": {\"at\": \"x\"}}}"
                )),
                None => Answer::from_calls([("c1", "look", "{\"at\": \"x\"}")]),
            };
            let is_text = advisor.is_some();
            let setting = with_memory([first, Answer::from_text("Ok.")], remembers, advisor, memory.clone());
            chunks(setting.turn("Go on.")).await;
            assert_eq!(setting.runs().len(), 1);
            setting.remembered().await;
            for prompt in setting.model.prompts() {
                let roles: Vec<_> = prompt.messages.iter().map(Message::role).collect();
                let roles = &roles[usize::from(is_text)..];
                assert_eq!(roles.contains(&Role::Tool), !is_text && prompt.messages.len() > 1, "{roles:?}");
                assert!(roles.windows(2).all(|two| two != [Role::User, Role::User]), "{roles:?}");
            }
        }
    }
}

#[tokio::test]
async fn law_k4_dropped_turn_leaves_a_usable_conversation() {
    for remembers in PLACES {
        for format in TextFormat::ALL {
            let whole = call(format, "{\"at\": \"x\"}");
            for at in (0..whole.len()).step_by(7).filter(|at| whole.is_char_boundary(*at)) {
                let cut = Answer::new().text("Hm. ").text(&whole[..at]).hang();
                let setting = setting(
                    [cut, Answer::from_text(whole.clone()), Answer::from_text("Ok.")],
                    remembers,
                    in_text(format),
                );
                let mut turn = setting.turn("One?");
                while turn.next().await.unwrap().unwrap().text() != Some("Hm. ") {}
                drop(turn);
                chunks(setting.turn("Two?")).await;
                assert_eq!(setting.runs(), [json!({"at": "x"})]);
                setting.remembered().await;
            }
        }
    }
}

#[tokio::test]
async fn law_t2_cut_call_is_an_error_result() {
    let cut = "<tool name=\"look\"><arg name=\"at\">x</arg>";
    let answers = [Answer::from_text(cut), Answer::from_text("Sorry.")];
    let setting = setting(answers, Phase::Round, in_text(TextFormat::Xml));
    chunks(setting.turn("Go.")).await;
    assert!(setting.runs().is_empty());
    assert!(setting.remembered().await[2].tool_result().unwrap().is_error);
    let prompts = setting.model.prompts();
    let sent = prompts[1].messages.iter().find(|message| message.role() == Role::Assistant).unwrap();
    assert!(sent.text().ends_with("</tool>"), "the model reads where its call ended: {}", sent.text());
}

#[tokio::test]
async fn calls_of_text_and_interface_may_be_in_one_answer() {
    let both =
        Answer::new().text(call(TextFormat::Xml, "{\"at\": \"a\"}")).call("c1", "look", "{\"at\": \"b\"}");
    let setting = setting(
        [both.finish(FinishReason::ToolCalls), Answer::from_text("Ok.")],
        Phase::Round,
        in_text(TextFormat::Xml),
    );
    chunks(setting.turn("Go.")).await;
    assert_eq!(setting.runs().len(), 2);
    let calls: Vec<_> =
        setting.remembered().await[1].tool_calls().map(|call| call.arguments.clone()).collect();
    assert_eq!(calls, ["{\"at\":\"a\"}", "{\"at\": \"b\"}"]);
}

#[tokio::test]
async fn call_in_text_is_reported_or_recovered_beside_the_interface() {
    let text =
        "<|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{\"at\": \"x\"}<|tool_call_end|>";
    let answers = || [Answer::from_text(text), Answer::from_text("Ok.")];
    let native = TextToolCalls::new(ToolCallFormat::Api);
    let reporting = setting(answers(), Phase::Round, Some(native.clone()));
    let response = reporting.client.prompt().user("Go.").conversation("c").call().await.unwrap();
    assert_eq!((response.text().as_str(), reporting.runs().len()), (text, 0));
    let leaks: Leaks = response.turn.extensions().get().unwrap();
    assert_eq!(leaks.0[0].format, TextFormat::Kimi);
    assert_eq!(reporting.model.prompts()[0].tools, ["look"]);

    let recovering = TextToolCalls { recovered: vec![TextFormat::Kimi], ..native };
    let recovering = setting(answers(), Phase::Round, Some(recovering));
    chunks(recovering.turn("Go.")).await;
    assert_eq!(recovering.runs(), [json!({"at": "x"})]);
    assert_eq!(recovering.remembered().await[1].tool_calls().next().unwrap().id, "functions.look:0");
}

#[tokio::test]
async fn tool_choice_is_described_in_words() {
    for (choice, expected, calls) in [
        (ToolChoice::Required, Some("must call at least one tool"), 1),
        (ToolChoice::Tool("look".into()), Some("must call the tool `look`"), 1),
        (ToolChoice::None, None, 0),
    ] {
        let written = call(TextFormat::Json, "{\"at\": \"x\"}");
        let setting = setting(
            [Answer::from_text(written), Answer::from_text("Ok.")],
            Phase::Round,
            in_text(TextFormat::Json),
        );
        let options = ChatOptions {
            parallel_tool_calls: Some(false),
            tool_choice: Some(choice),
            ..ChatOptions::default()
        };
        chunks(setting.client.prompt().user("Go.").conversation("c").options(options).stream()).await;
        let first = setting.model.prompts()[0].messages.iter().next().unwrap().clone();
        match expected {
            Some(words) => assert!(first.text().contains(words) && first.text().contains("at most one tool")),
            None => assert_eq!(first.role(), Role::User, "nothing is described"),
        }
        assert_eq!(setting.runs().len(), calls);
    }
}

#[tokio::test]
async fn answer_form_is_described_in_words_beside_tools() {
    let form =
        ResponseFormat::JsonSchema { name: "n".into(), schema: json!({"type": "number"}), strict: true };
    let options = ChatOptions { response_format: Some(form.clone()), ..ChatOptions::default() };
    let written = call(TextFormat::Xml, "{\"at\": \"x\"}");
    let answers = || [Answer::from_text(written.clone()), Answer::from_text("7")];
    for (choice, format, is_said) in [(ToolChoice::Auto, None, true), (ToolChoice::None, Some(form), false)] {
        let setting = setting(answers(), Phase::Round, in_text(TextFormat::Xml));
        let options = ChatOptions { tool_choice: Some(choice), ..options.clone() };
        chunks(setting.client.prompt().user("How many?").conversation("c").options(options).stream()).await;
        for prompt in setting.model.prompts() {
            assert_eq!(prompt.options.response_format, format, "a server that enforces it allows no call");
            let first = prompt.messages.iter().next().unwrap();
            assert_eq!(first.text().contains("{\"type\":\"number\"}"), is_said);
        }
        assert_eq!(setting.runs().len(), usize::from(is_said));
    }
}

/// The bound on calls holds for all texts of an answer together.
#[tokio::test]
async fn law_r1_call_too_many_over_several_texts_is_error() {
    let mut limits = ParserLimits::default();
    limits.calls = 3;
    let in_text = TextToolCalls { limits, ..TextToolCalls::new(TextFormat::Xml) };
    let two = call(TextFormat::Xml, r#"{"at":"a"}"#).repeat(2);
    let text = |block| Delta::text(two.as_str()).with_block(block);
    for (blocks, kind) in [(1, None), (2, Some(ErrorKind::TooLarge))] {
        let answer = (0..blocks).map(text).fold(Answer::new(), Answer::delta).done();
        let setting = setting([answer, Answer::from_text("Done.")], Phase::Round, Some(in_text.clone()));
        let outcome = setting.client.prompt().user("?").conversation("c").call().await;
        assert_eq!(outcome.err().map(|error| error.kind()), kind, "{blocks} texts");
    }
}

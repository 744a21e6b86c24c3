//! Guards in whole chains: with the tool loop, memory in both places, all modes, and drops.

use advisor_chain::stream_policy::{Guard, LetterCase};
use advisor_tests::prelude::*;

use crate::checked::read;

const MODES: [ToolCallStreaming; 3] =
    [ToolCallStreaming::TextOnly, ToolCallStreaming::FinalAnswerOnly, ToolCallStreaming::All];
const PLACES: [Phase; 2] = [Phase::Round, Phase::Turn];

fn secret() -> Guard {
    Guard::for_words(["secret"], LetterCase::Ignore).with_reply("[no]")
}

/// A chain of a guard on both sides, the tool `look`, and memory in this phase.
struct Setting {
    client: ChatClient,
    model: ScriptedModel,
    memory: ChatMemoryAdvisor,
    /// The number of times that the tool ran.
    runs: Arc<Mutex<usize>>,
}

impl Setting {
    fn new(answers: impl IntoIterator<Item = Answer>, mode: ToolCallStreaming, remembers: Phase) -> Self {
        let (model, runs) = (ScriptedModel::new(answers), Arc::<Mutex<usize>>::default());
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let look = ToolDefinition::new("look", "Looks.", json!({"type": "object"}));
        let counted = Arc::clone(&runs);
        let client = ChatClient::builder(model.clone())
            .advisor(ToolCallAdvisor::builder().streaming(mode).build().unwrap())
            .advisor(secret().on_input())
            .advisor_in(remembers, memory.clone())
            .advisor(secret().on_output())
            .tool(FnTool::new(look, move |_: Value| {
                *counted.lock().unwrap() += 1;
                async { Ok("a secret result") }
            }))
            .build()
            .unwrap();
        Self { client, model, memory, runs }
    }

    fn turn(&self, text: &str) -> TurnStream {
        self.client.prompt().user(text).conversation("c").stream()
    }

    fn runs(&self) -> usize {
        *self.runs.lock().unwrap()
    }

    /// The stored messages in short, which are a valid transcript.
    async fn remembered(&self) -> Vec<String> {
        let transcript = self.memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(validate_transcript(&transcript), [], "{transcript:?}");
        transcript.iter().map(line).collect()
    }
}

/// A message in short: `text`, `text (name)`, `= result`.
fn line(message: &Message) -> String {
    let calls: String = message.tool_calls().map(|call| format!("({})", call.name)).collect();
    match message.tool_result() {
        Some(result) => format!("= {}", result.text()),
        None => message.text() + &calls,
    }
}

fn looking() -> Answer {
    Answer::new().text("Well. ").call("c1", "look", "{}").finish(FinishReason::ToolCalls)
}

fn telling() -> Answer {
    Answer::new().text("It is a sec").text("ret").text(" of mine.").finish(FinishReason::Stop)
}

/// The answer of the last round ends at the match. Shown, returned and stored texts are equal, and the next turn sends
/// them.
#[tokio::test]
async fn law_m4_s4_ended_answer_is_remembered_as_shown() {
    for (mode, remembers) in MODES.into_iter().flat_map(|mode| PLACES.map(|place| (mode, place))) {
        let setting = Setting::new([looking(), telling(), Answer::from_text("Bye.")], mode, remembers);
        let out = read(setting.turn("go")).await;
        let response = out.outcome.unwrap();
        assert_eq!(response.text(), "It is a [no]");
        assert_eq!(out.fold.text(response.round()), response.text(), "{mode:?}");
        assert_eq!((&response.finish().reason, setting.runs()), (&FinishReason::ContentFilter, 1));
        let expected = ["go", "Well. (look)", "= a secret result", "It is a [no]"];
        assert_eq!(setting.remembered().await, expected, "{mode:?} {remembers}");
        assert_eq!(response.transcript().iter().map(line).collect::<Vec<_>>(), expected);
        read(setting.turn("Thanks.")).await.outcome.unwrap();
        let sent: Vec<_> = setting.model.prompts()[2].messages.iter().map(line).collect();
        assert_eq!(sent, [&expected[..], &["Thanks."]].concat(), "{mode:?} {remembers}");
    }
}

/// A match ends the turn, also between the calls of a round: none of them runs. The loop answers the call that was
/// complete, and closes the turn.
#[tokio::test]
async fn law_t2_m1_no_call_of_an_ended_answer_runs() {
    for (mode, remembers) in MODES.into_iter().flat_map(|mode| PLACES.map(|place| (mode, place))) {
        let first =
            Answer::new().call("c1", "look", "{}").text("a sec").text("ret ").call("c2", "look", "{}");
        let answers = [first.finish(FinishReason::ToolCalls), Answer::from_text("Bye.")];
        let setting = Setting::new(answers, mode, remembers);
        let response = read(setting.turn("go")).await.outcome.unwrap();
        assert_eq!(response.finish().reason, FinishReason::ContentFilter);
        assert_eq!((setting.runs(), setting.model.calls()), (0, 1), "{mode:?} {remembers}");
        let remembered = setting.remembered().await;
        assert_eq!(remembered[..2], ["go", "a [no](look)"]);
        assert!(remembered[2].starts_with("= not started"), "{remembered:?}");
        assert_eq!(remembered[3..], [response.text()]);
        assert_eq!(read(setting.turn("Thanks.")).await.outcome.unwrap().text(), "Bye.");
    }
}

/// A refused input reaches neither memory nor model nor tools, and the conversation goes on as if it had not been.
#[tokio::test]
async fn law_m4_m6_refused_input_is_not_remembered() {
    for (mode, remembers) in MODES.into_iter().flat_map(|mode| PLACES.map(|place| (mode, place))) {
        let answers = [looking(), Answer::from_text("Done."), Answer::from_text("Bye.")];
        let setting = Setting::new(answers, mode, remembers);
        read(setting.turn("go")).await.outcome.unwrap();
        let out = read(setting.turn("Tell me the SECRET.")).await;
        let response = out.outcome.unwrap();
        assert_eq!((response.text().as_str(), out.fold.text(response.round()).as_str()), ("[no]", "[no]"));
        assert_eq!(response.finish().reason, FinishReason::ContentFilter);
        assert_eq!((setting.runs(), setting.model.calls()), (1, 2));
        let before = ["go", "Well. (look)", "= a secret result", "Done."];
        assert_eq!(setting.remembered().await, before, "{mode:?} {remembers}");
        // Stored results and answers are no input of this turn.
        assert_eq!(read(setting.turn("Thanks.")).await.outcome.unwrap().text(), "Bye.");
        assert_eq!(setting.remembered().await, [&before[..], &["Thanks.", "Bye."]].concat());
    }
}

/// Outside memory or the tool loop, a guard on output would come too late.
#[test]
fn output_guard_outside_memory_is_refused() {
    for phase in [Phase::Turn, Phase::Round] {
        let client = advisor_chain::client(ScriptedModel::new([]))
            .advisor_in(phase, secret().with_name("no-secrets").on_output())
            .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()));
        let error = client.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().contains("no-secrets"), "{error}");
    }
}

//! Tests of `end_when`: an answer that an advisor ends is the shown part of it, and so is the stored answer.

use advisor_chain::messages::{ToolCallDelta, Usage};
use advisor_tests::prelude::*;

/// Ends the answer at the first text with `stop` in it.
fn stopping(reason: FinishReason) -> impl StreamAdvisor {
    from_fn("stopping", move |request: ChatRequest, next: AdvisorChain| {
        let reason = reason.clone();
        async move {
            let answer = next.next_stream(request).await?;
            Ok(answer.end_when(move |chunk| chunk.text()?.contains("stop").then(|| reason.clone())))
        }
    })
}

struct Setting {
    client: ChatClient,
    memory: ChatMemoryAdvisor,
    model: ScriptedModel,
    journal: Journal,
}

impl Setting {
    fn new(
        (stops, advisor): (Phase, impl StreamAdvisor),
        remembers: Phase,
        mode: ToolCallStreaming,
        answers: impl IntoIterator<Item = Answer>,
    ) -> Self {
        let journal = Journal::new();
        let model = ScriptedModel::new(answers).with_journal(&journal);
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let look = ToolDefinition::new("look", "Looks.", json!({"type": "object"}));
        let in_tool = journal.clone();
        let client = ChatClient::builder(model.clone())
            .advisor(ToolCallAdvisor::builder().streaming(mode).build().unwrap())
            .advisor_in(remembers, memory.clone())
            .advisor_in(stops, advisor)
            .tool(FnTool::new(look, move |_: Value| {
                in_tool.record("tool");
                async { Ok("sunny") }
            }))
            .build()
            .unwrap();
        Self { client, memory, model, journal }
    }

    /// Reads a turn to its end, and returns the fold of its chunks and its response.
    async fn ask(&self) -> (ChunkFold, ChatResponse) {
        let mut turn = self.client.prompt().user("go").conversation("c").stream();
        let mut shown = ChunkFold::new();
        loop {
            let chunk = turn.next().await.expect("a turn ends with `Completed`").unwrap();
            shown.push(&chunk);
            if let Chunk::Completed(response) = chunk {
                assert!(turn.next().await.is_none());
                return (shown, response);
            }
        }
    }

    async fn remembered(&self) -> Vec<String> {
        let transcript = self.memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(validate_transcript(&transcript), [], "{transcript:?}");
        transcript.iter().map(line).collect()
    }
}

fn line(message: &Message) -> String {
    let calls: String = message.tool_calls().map(|call| format!("({})", call.id)).collect();
    format!("{:?}: {}{calls}", message.role(), message.text()).to_lowercase()
}

const PLACES: [(Phase, Phase); 6] = [
    (Phase::ModelCall, Phase::Round),
    (Phase::Round, Phase::Round),
    (Phase::Turn, Phase::Round),
    (Phase::ModelCall, Phase::Turn),
    (Phase::Round, Phase::Turn),
    (Phase::Turn, Phase::Turn),
];

const MODES: [ToolCallStreaming; 3] =
    [ToolCallStreaming::TextOnly, ToolCallStreaming::FinalAnswerOnly, ToolCallStreaming::All];

#[tokio::test]
async fn law_s4_o6_ended_answer_remembers_what_was_shown() {
    for ((stops, remembers), mode) in PLACES.into_iter().flat_map(|place| MODES.map(|mode| (place, mode))) {
        eprintln!("{stops} {remembers} {mode:?}");
        let first = Answer::new().text("let me see").call("c1", "look", "{}").finish(FinishReason::ToolCalls);
        let answers = [first, Answer::new().text("It is ").text("stop it").text(" sunny").hang()];
        let setting = Setting::new((stops, stopping(FinishReason::ContentFilter)), remembers, mode, answers);
        if (stops, mode) == (Phase::Turn, ToolCallStreaming::FinalAnswerOnly) {
            // Nothing of the answer comes out before its end, so there is nothing to decide on.
            continue;
        }
        let (shown, response) = setting.ask().await;
        assert_eq!(response.text(), "It is ");
        assert_eq!(response.finish().reason, FinishReason::ContentFilter);
        assert_eq!(shown.text(response.round()), "It is ");
        assert_eq!(shown.open_blocks().count(), 0);
        setting.journal.assert_count("tool", 1);
        setting.journal.assert_count("model.drop r2", 1);
        let remembered = setting.remembered().await;
        assert_eq!(remembered, ["user: go", "assistant: let me see(c1)", "tool: sunny", "assistant: it is "]);
        let told: Vec<_> = response.transcript().iter().map(line).collect();
        assert_eq!(told, remembered, "told is remembered");
    }
}

#[tokio::test]
async fn answer_ended_before_output_is_empty() {
    for (stops, remembers) in PLACES {
        eprintln!("{stops} {remembers}");
        let answers = [Answer::new().text("stop it").hang(), Answer::from_text("Hello.")];
        let advisor = stopping(FinishReason::ContentFilter);
        let setting = Setting::new((stops, advisor), remembers, ToolCallStreaming::TextOnly, answers);
        let (shown, response) = setting.ask().await;
        assert_eq!((response.text().as_str(), shown.blocks(response.round()).len()), ("", 1), "{response:?}");
        let (_, response) = setting.ask().await;
        assert_eq!(response.text(), "Hello.");
        let prompts = setting.model.prompts();
        assert_eq!(validate_transcript(&prompts[1].messages), [], "{:?}", prompts[1].messages);
    }
}

/// Gives `blocks` as the first answer of a turn, and ends it at the text `stop`.
fn ending(blocks: Vec<Block>, reason: FinishReason) -> impl StreamAdvisor {
    from_fn("ending", move |request: ChatRequest, next: AdvisorChain| {
        let (blocks, reason) = (blocks.clone(), reason.clone());
        async move {
            if request.messages.last().is_some_and(|last| last.role() == Role::Tool) {
                return next.next_stream(request).await;
            }
            let first = ChatResponse::new(0, Message::assistant_blocks(blocks), FinishReason::ToolCalls);
            Ok(request.answer(first).end_when(move |chunk| (chunk.text()? == "stop").then(|| reason.clone())))
        }
    })
}

/// A complete call runs if the reason does not veto it; an open call never runs.
#[tokio::test]
async fn law_t2_ended_answer_runs_only_complete_unvetoed_calls() {
    let call = || Block::from(ToolCall::new("c1", "look", "{}"));
    for (reason, runs) in [(FinishReason::Stop, 1), (FinishReason::ContentFilter, 0)] {
        let advisor = ending(vec![call(), Block::text("stop")], reason);
        let place = (Phase::ModelCall, advisor);
        let setting = Setting::new(place, Phase::Round, ToolCallStreaming::All, [Answer::from_text("Done.")]);
        setting.ask().await;
        setting.journal.assert_count("tool", runs);
        setting.remembered().await;
    }
    // Outside the loop, nobody is asked to run it either.
    let first = Answer::new().call("c1", "look", "{}").text("stop").finish(FinishReason::ToolCalls);
    let place = (Phase::Turn, stopping(FinishReason::ContentFilter));
    let setting = Setting::new(place, Phase::Round, ToolCallStreaming::All, [first]);
    setting.ask().await;
    let waiting = setting.memory.client_side_calls(&ConversationKey::new("c").unwrap()).await.unwrap();
    assert_eq!(waiting, []);
    // Empty is absent: the call has no id yet.
    let call = ToolCallDelta::start(0, "", "look").with_arguments("{\"a\":");
    let answer = Answer::new().delta(Delta::tool_call(call)).text("stop").hang();
    let advisor = stopping(FinishReason::Stop);
    let setting = Setting::new(
        (Phase::ModelCall, advisor),
        Phase::Round,
        ToolCallStreaming::All,
        [answer, Answer::from_text("Done.")],
    );
    let (shown, _) = setting.ask().await;
    setting.journal.assert_count("tool", 0);
    let remembered = setting.remembered().await;
    assert_eq!(
        remembered[1..3],
        ["assistant: (call_1_0)", "tool: not started: the call is incomplete; make it again, by itself"],
        "{remembered:?}"
    );
    assert_eq!(shown.blocks(1)[0].1.as_tool_call().unwrap().id, "call_1_0");
}

/// Ends a turn at the first chunk that `at` is true of.
fn ending_at(at: fn(&Chunk) -> bool) -> impl StreamAdvisor {
    from_fn("ending at", move |request: ChatRequest, next: AdvisorChain| async move {
        let answer = next.next_stream(request).await?;
        Ok(answer.end_when(move |chunk| at(chunk).then_some(FinishReason::Interrupted)))
    })
}

/// Outside the loop, a turn can be ended when a round has completed, and while tools run.
#[tokio::test]
async fn law_t1_s4_turn_ended_during_tools_reports_interruption() {
    let at_round: fn(&Chunk) -> bool = |chunk| matches!(chunk, Chunk::RoundCompleted(_));
    let at_tool: fn(&Chunk) -> bool = |chunk| matches!(chunk, Chunk::Tool(_));
    let modes = [ToolCallStreaming::TextOnly, ToolCallStreaming::All];
    let unknown = "tool: interrupted, outcome unknown";
    // A tool that ends at once has ended when its event comes out.
    let cases =
        [(at_round, modes[0], unknown), (at_round, modes[1], unknown), (at_tool, modes[1], "tool: sunny")];
    for ((at, mode, result), remembers) in
        cases.into_iter().flat_map(|case| [(case, Phase::Round), (case, Phase::Turn)])
    {
        let first = Answer::new()
            .text("let me see")
            .call("c1", "look", "{}")
            .finish(FinishReason::ToolCalls)
            .usage(5, 2);
        let answers = [first, Answer::from_text("Hello.")];
        let setting = Setting::new((Phase::Turn, ending_at(at)), remembers, mode, answers);
        let (shown, response) = setting.ask().await;
        assert_eq!((response.text().as_str(), &response.finish().reason), ("", &FinishReason::Interrupted));
        assert_eq!(shown.text(response.round()), "let me see");
        assert_eq!(response.usage().map(Usage::total), Some(Some(7)));
        let cut_off = ["user: go", "assistant: let me see(c1)", result];
        let told: Vec<_> = response.transcript().iter().map(line).collect();
        assert_eq!(told, cut_off, "{mode:?} {remembers}");
        assert_eq!(validate_transcript(response.transcript()), []);
        let remembered = setting.remembered().await;
        assert_eq!(remembered[..3], cut_off, "{mode:?} {remembers}");
        assert_eq!(setting.ask().await.1.text(), "Hello.");
    }
}

//! Tests of `end_when`: an answer that an advisor ends is the shown part of it, and so is the stored answer.

use advisor_chain::messages::{ToolCallDelta, Usage};
use advisor_tests::lines::short;
use advisor_tests::prelude::*;
use advisor_tests::reading::{Run, read_stream};
use advisor_tests::scene::Scene;

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

/// A chain of this advisor in this phase.
fn scene(
    (stops, advisor): (Phase, impl StreamAdvisor),
    remembers: Phase,
    mode: ToolCallStreaming,
    answers: impl IntoIterator<Item = Answer>,
) -> Scene {
    let scene = Scene::new(answers).in_mode(mode).remembering(remembers);
    scene.with(|client| client.advisor_in(stops, advisor))
}

/// Reads a turn to its end, and returns the fold of its chunks and its response.
async fn ask(scene: &Scene) -> (ChunkFold, ChatResponse) {
    let run = read_stream(scene.turn("go")).await;
    (run.fold(), run.outcome.unwrap())
}

/// The phases of the advisor and of memory.
const BOTH: [(Phase, Phase); 6] = [
    (Phase::ModelCall, Phase::Round),
    (Phase::Round, Phase::Round),
    (Phase::Turn, Phase::Round),
    (Phase::ModelCall, Phase::Turn),
    (Phase::Round, Phase::Turn),
    (Phase::Turn, Phase::Turn),
];

#[tokio::test]
async fn law_s4_o6_ended_answer_remembers_what_was_shown() {
    for ((stops, remembers), mode) in BOTH.into_iter().flat_map(|place| MODES.map(|mode| (place, mode))) {
        eprintln!("{stops} {remembers} {mode:?}");
        let first = Answer::new().text("let me see").call("c1", "look", "{}").finish(FinishReason::ToolCalls);
        let answers = [first, Answer::new().text("It is ").text("stop it").text(" sunny").hang()];
        let scene = scene((stops, stopping(FinishReason::ContentFilter)), remembers, mode, answers);
        if (stops, mode) == (Phase::Turn, ToolCallStreaming::FinalAnswerOnly) {
            // Nothing of the answer comes out before its end, so there is nothing to decide on.
            continue;
        }
        let (shown, response) = ask(&scene).await;
        assert_eq!(response.text(), "It is ");
        assert_eq!(response.finish.reason, FinishReason::ContentFilter);
        assert_eq!(shown.text(response.round()), "It is ");
        assert_eq!(shown.clone().close_open(), []);
        scene.journal.assert_count("tool look", 1);
        scene.journal.assert_count("model.drop r2", 1);
        let remembered = scene.remembered().await;
        assert_eq!(remembered, ["go", "let me see(look)", "= sunny", "It is "]);
        assert_eq!(short(&response.transcript), remembered, "told is remembered");
    }
}

#[tokio::test]
async fn answer_ended_before_output_is_empty() {
    for (stops, remembers) in BOTH {
        eprintln!("{stops} {remembers}");
        let answers = [Answer::new().text("stop it").hang(), Answer::from_text("Hello.")];
        let advisor = stopping(FinishReason::ContentFilter);
        let scene = scene((stops, advisor), remembers, ToolCallStreaming::TextOnly, answers);
        let (shown, response) = ask(&scene).await;
        assert_eq!((response.text().as_str(), shown.blocks(response.round()).len()), ("", 1), "{response:?}");
        let (_, response) = ask(&scene).await;
        assert_eq!(response.text(), "Hello.");
        let prompts = scene.model.prompts();
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
        let scene = scene(place, Phase::Round, ToolCallStreaming::All, [Answer::from_text("Done.")]);
        ask(&scene).await;
        scene.journal.assert_count("tool look", runs);
        scene.remembered().await;
    }
    // A call that ends with the chunk that is not emitted is still open.
    let ends_call =
        |chunk: &Chunk| matches!(chunk, Chunk::Closed { content, .. } if content.as_tool_call().is_some());
    for reason in [FinishReason::Stop, FinishReason::Other("budget".into())] {
        let advisor = from_fn("ending calls", move |request: ChatRequest, next: AdvisorChain| {
            let reason = reason.clone();
            async move {
                let answer = next.next_stream(request).await?;
                Ok(answer.end_when(move |chunk| ends_call(chunk).then(|| reason.clone())))
            }
        });
        let answers = [Answer::from_calls([("c1", "look", "{}")]), Answer::from_text("Done.")];
        let scene = scene((Phase::ModelCall, advisor), Phase::Round, ToolCallStreaming::All, answers);
        let (shown, _) = ask(&scene).await;
        scene.journal.assert_count("tool look", 0);
        assert!(!shown.blocks(1)[0].1.as_tool_call().unwrap().complete);
    }
    // Outside the loop, nobody is asked to run it either.
    let first = Answer::new().call("c1", "look", "{}").text("stop").finish(FinishReason::ToolCalls);
    let place = (Phase::Turn, stopping(FinishReason::ContentFilter));
    let scene = scene(place, Phase::Round, ToolCallStreaming::All, [first]);
    ask(&scene).await;
    let waiting = scene.memory.client_side_calls(&ConversationKey::new("c").unwrap()).await.unwrap();
    assert_eq!(waiting, []);
    // Empty is absent: the call has no id yet.
    let call = ToolCallDelta::start(0, "", "look").with_arguments("{\"a\":");
    let answer = Answer::new().delta(Delta::tool_call(call)).text("stop").hang();
    let advisor = stopping(FinishReason::Stop);
    let scene = self::scene(
        (Phase::ModelCall, advisor),
        Phase::Round,
        ToolCallStreaming::All,
        [answer, Answer::from_text("Done.")],
    );
    let (shown, _) = ask(&scene).await;
    scene.journal.assert_count("tool look", 0);
    let remembered = scene.remembered().await;
    assert_eq!(
        remembered[1..3],
        ["(look)", "= not started: the call is incomplete; make it again, by itself"],
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
    let unknown = "= interrupted, outcome unknown";
    // A tool that ends at once has ended when its event comes out.
    let cases =
        [(at_round, modes[0], unknown), (at_round, modes[1], unknown), (at_tool, modes[1], "= sunny")];
    for ((at, mode, result), remembers) in
        cases.into_iter().flat_map(|case| [(case, Phase::Round), (case, Phase::Turn)])
    {
        let first = Answer::new()
            .text("let me see")
            .call("c1", "look", "{}")
            .finish(FinishReason::ToolCalls)
            .usage(5, 2);
        let answers = [first, Answer::from_text("Hello.")];
        let scene = scene((Phase::Turn, ending_at(at)), remembers, mode, answers);
        // What was shown of the round that was cut off is in no response, so the laws of a stream are not checked.
        let chunks: Vec<Chunk> = scene.turn("go").try_collect().await.unwrap();
        let response = chunks.last().unwrap().completed().unwrap();
        let shown = Run { outcome: Ok(response.clone()), chunks: chunks.clone() }.fold();
        assert_eq!((response.text().as_str(), &response.finish.reason), ("", &FinishReason::Interrupted));
        assert_eq!(shown.text(response.round()), "let me see");
        assert_eq!(response.usage.as_ref().map(Usage::total), Some(Some(7)));
        let cut_off = ["go", "let me see(look)", result];
        assert_eq!(short(&response.transcript), cut_off, "{mode:?} {remembers}");
        assert_eq!(validate_transcript(&response.transcript), []);
        let remembered = scene.remembered().await;
        assert_eq!(remembered[..3], cut_off, "{mode:?} {remembers}");
        assert_eq!(ask(&scene).await.1.text(), "Hello.");
    }
}

//! The table of streaming modes, row by row, as exact sequences of chunks.

use advisor_chain::tools::ToolCallStreaming::{All, FinalAnswerOnly, TextOnly};
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// A tool that reports its progress.
fn look() -> FnTool {
    FnTool::with_invocation(definition("look"), |invocation: ToolInvocation| async move {
        invocation.progress.report("half").await;
        Ok(ToolOutput::from("sunny"))
    })
}

fn two_rounds() -> ScriptedModel {
    ScriptedModel::new([
        Answer::new()
            .reasoning("Hm.")
            .text("Let me look.")
            .call("c1", "look", "{\"a\":1}")
            .usage(10, 5)
            .finish(FinishReason::ToolCalls),
        Answer::new().text("It is ").text("sunny.").usage(20, 3).finish(FinishReason::Stop),
    ])
}

async fn run(advisor: ToolCallAdvisor) -> Run {
    let client = client(&two_rounds(), advisor).tool(look()).build().unwrap();
    read(client.prompt().user("How is it?").stream()).await
}

const ROUND_1_TEXT: [&str; 6] =
    ["1.0 + reasoning", "1.0 \"Hm.\"", "1.0 -", "1.1 + text", "1.1 \"Let me look.\"", "1.1 -"];
const TOOL: [&str; 3] = ["tool c1 started {\"a\":1}", "tool c1 progress half", "tool c1 finished: sunny"];
const ANSWER: [&str; 4] = ["2.0 + text", "2.0 \"It is \"", "2.0 \"sunny.\"", "2.0 -"];
const END: [&str; 1] = ["completed 2 Stop"];

/// Text is live, and content that belongs to the call is hidden.
#[tokio::test]
async fn text_only_shows_user_facing_text() {
    let run = run(ToolCallAdvisor::new()).await;
    let expected = [&ROUND_1_TEXT[..], &["round 1 completed"], &ANSWER, &["usage 2 20/3"], &END];
    assert_eq!(run.lines(), expected.concat());
    assert_eq!(run.response().usage, Some(advisor_chain::messages::Usage::new(30, 8)), "the turn's sum");
}

#[tokio::test]
async fn final_answer_only_shows_last_round() {
    let run = run(streaming(FinalAnswerOnly)).await;
    // Withheld until it is known to be the last, the answer comes as whole blocks.
    let expected = ["2.0 + text", "2.0 \"It is sunny.\"", "2.0 -", "completed 2 Stop"];
    assert_eq!(run.lines(), expected);
    assert_eq!(run.response().usage, Some(advisor_chain::messages::Usage::new(30, 8)));
}

/// With all of it streamed, a tool-call response, then the final response.
#[tokio::test]
async fn all_shows_tool_call_response_then_final_response() {
    let run = run(streaming(All)).await;
    let expected = [
        &ROUND_1_TEXT[..],
        &["1.2 + call c1 look", "1.2 {\"a", "1.2 \":1}", "1.2 -", "usage 1 10/5"],
        &["round 1 completed"],
        &TOOL,
        &ANSWER,
        &["usage 2 20/3"],
        &END,
    ];
    assert_eq!(run.lines(), expected.concat());
    let responses: Vec<_> = run
        .chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::RoundCompleted(response) | Chunk::Completed(response) => Some(response),
            _ => None,
        })
        .collect();
    assert_eq!(responses.len(), 2);
    assert_eq!(responses[0].tool_calls().count(), 1);
    assert_eq!(responses[1].text(), "It is sunny.");
    assert_eq!(
        responses[0].usage.as_ref(),
        Some(&advisor_chain::messages::Usage::new(10, 5)),
        "a round has its own"
    );
}

/// `tool_events(true)` adds the rows of tools to the first two modes, nothing else.
#[tokio::test]
async fn tool_events_are_added_to_every_mode() {
    let with_events = |mode| ToolCallAdvisor::builder().streaming(mode).tool_events(true).build().unwrap();
    let text_only = run(with_events(TextOnly)).await;
    let expected = [&ROUND_1_TEXT[..], &["round 1 completed"], &TOOL, &ANSWER, &["usage 2 20/3"], &END];
    assert_eq!(text_only.lines(), expected.concat());

    let final_only = run(with_events(FinalAnswerOnly)).await;
    let expected = [&TOOL[..], &["2.0 + text", "2.0 \"It is sunny.\"", "2.0 -"], &END];
    assert_eq!(final_only.lines(), expected.concat());

    assert_eq!(run(with_events(All)).await.lines(), run(streaming(All)).await.lines());
}

/// The spellings of the builder.
#[tokio::test]
async fn each_spelling_is_its_mode() {
    let builder = ToolCallAdvisor::builder;
    for (spelled, mode) in [
        (ToolCallAdvisor::new(), TextOnly),
        (builder().build().unwrap(), TextOnly),
        (builder().stream_tool_call_responses(false).build().unwrap(), TextOnly),
        (builder().stream_tool_call_responses(true).build().unwrap(), All),
        (builder().suppress_tool_call_streaming().build().unwrap(), FinalAnswerOnly),
    ] {
        assert_eq!(run(spelled).await.lines(), run(streaming(mode)).await.lines(), "{mode:?}");
    }
}

/// Text of every round is live in `TextOnly` and `All`: it is emitted before the model continues (law S2).
#[tokio::test]
async fn law_s2_text_is_live_in_rounds_that_go_on() {
    for (mode, live) in [(TextOnly, true), (All, true), (FinalAnswerOnly, false)] {
        let (early, late) = (Gate::new(), Gate::new());
        let model = ScriptedModel::new([
            Answer::new()
                .text("Let me look.")
                .gate(&early)
                .call("c1", "look", "{}")
                .finish(FinishReason::ToolCalls),
            Answer::new().text("It is ").gate(&late).text("sunny.").finish(FinishReason::Stop),
        ]);
        let client = client(&model, streaming(mode)).tool(tool("look", "sunny")).build().unwrap();
        let mut turn = Reader::new(client.prompt().user("How is it?").stream());
        let shown = turn.so_far().await;
        let expected: &[&str] = if live { &["1.0 + text", "1.0 \"Let me look.\""] } else { &[] };
        assert_eq!(shown, expected, "{mode:?}");
        early.release();
        let shown = turn.so_far().await;
        assert_eq!(shown.contains(&String::from("2.0 \"It is \"")), live, "{mode:?}: {shown:?}");
        late.release();
        turn.finish().await;
    }
}

/// The withheld part of an answer is shown when the answer turns out to be the last. A limit or a cut can cause
/// this; memory stores the answer.
#[tokio::test]
async fn final_answer_only_shows_vetoed_or_limited_answer() {
    let asks = |finish| Answer::new().text("I will look.").call("c1", "look", "{}").finish(finish);
    for (finish, rounds) in [(FinishReason::Length, 9), (FinishReason::ToolCalls, 2)] {
        let model = ScriptedModel::new([Answer::from_calls([("c0", "look", "{}")]), asks(finish)]);
        let advisor = ToolCallAdvisor::builder()
            .suppress_tool_call_streaming()
            .limits(ToolLimits { rounds: Some(rounds), ..ToolLimits::default() })
            .build()
            .unwrap();
        let run = go(client(&model, advisor).tool(look())).await;
        let text: String = run.chunks.iter().filter_map(Chunk::text).collect();
        assert!(text.starts_with("I will look.I stopped here"), "{rounds}: {text}");
    }
}

/// `FinalAnswerOnly` is live when the round is certainly the last one: no tools, tool choice none, or no
/// round left.
#[tokio::test]
async fn final_answer_only_streams_live_in_last_round() {
    let live_after = async |rounds: usize, client: ChatClientBuilder, gate: &Gate| {
        let mut turn = Reader::new(client.build().unwrap().prompt().user("How is it?").stream());
        let shown = turn.so_far().await;
        gate.release();
        let run = turn.finish().await;
        assert_eq!(run.response().round() as usize, rounds);
        shown
    };
    let answer = |gate: &Gate| {
        Answer::new().text("It is ").gate(gate).text("sunny.").usage(1, 1).finish(FinishReason::Stop)
    };
    let builder = || ToolCallAdvisor::builder().suppress_tool_call_streaming();
    let none = ChatOptions { tool_choice: Some(ToolChoice::None), ..ChatOptions::default() };

    let gate = Gate::new();
    let model = ScriptedModel::new([answer(&gate)]);
    let shown = live_after(1, client(&model, builder().build().unwrap()), &gate).await;
    assert_eq!(shown, ["1.0 + text", "1.0 \"It is \""], "no tools");

    let gate = Gate::new();
    let model = ScriptedModel::new([answer(&gate)]);
    let offered = client(&model, builder().build().unwrap()).tool(look());
    let shown = live_after(1, offered.options(none), &gate).await;
    assert_eq!(shown, ["1.0 + text", "1.0 \"It is \""], "tool choice none");

    let gate = Gate::new();
    let model = ScriptedModel::new([Answer::from_calls([("c1", "look", "{}")]), answer(&gate)]);
    let limits = ToolLimits { rounds: Some(2), ..ToolLimits::default() };
    let offered = client(&model, builder().limits(limits).build().unwrap()).tool(look());
    let shown = live_after(2, offered, &gate).await;
    assert_eq!(shown, ["2.0 + text", "2.0 \"It is \""], "no round left");

    let gate = Gate::new();
    let model = ScriptedModel::new([answer(&gate)]);
    let shown = live_after(1, client(&model, builder().build().unwrap()).tool(look()), &gate).await;
    assert_eq!(shown, Vec::<String>::new(), "uncertain");
}

/// Calls that the loop does not run are shown when that is decided, or live in `All`.
#[tokio::test]
async fn caller_calls_are_shown_in_every_mode() {
    let script = || {
        ScriptedModel::new([Answer::new()
            .text("Please ")
            .call("c1", "sign", "{\"a\":1}")
            .text("sign.")
            .usage(1, 2)
            .finish(FinishReason::ToolCalls)])
    };
    let by_mode = async |mode| {
        let client =
            client(&script(), streaming(mode)).tool(ClientSideTool::new(definition("sign"))).build().unwrap();
        read(client.prompt().user("go").stream()).await.lines()
    };
    let live = ["1.0 + text", "1.0 \"Please \"", "1.0 -"];
    let rest = ["1.2 + text", "1.2 \"sign.\""];
    let call = ["1.1 + call c1 sign", "1.1 {\"a", "1.1 \":1}"];
    let whole_call = ["1.1 + call c1 sign", "1.1 {\"a\":1}", "1.1 -"];
    let end = ["completed 1 ToolCalls"];
    let expected = [&live[..], &rest, &["1.2 -"], &whole_call, &["usage 1 1/2"], &end].concat();
    assert_eq!(by_mode(TextOnly).await, expected);
    let whole = ["1.0 + text", "1.0 \"Please \"", "1.0 -"];
    let expected = [&whole[..], &whole_call, &["1.2 + text", "1.2 \"sign.\"", "1.2 -"], &end].concat();
    assert_eq!(by_mode(FinalAnswerOnly).await, expected);
    let expected = [&live[..], &call, &rest, &["1.1 -", "1.2 -", "usage 1 1/2"], &end].concat();
    assert_eq!(by_mode(All).await, expected);
}

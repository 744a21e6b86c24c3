//! Guards in whole chains: with the tool loop, memory in both places, all modes, and drops.

use advisor_chain::stream_policy::{Guard, LetterCase};
use advisor_tests::lines::short;
use advisor_tests::prelude::*;
use advisor_tests::reading::read_stream;
use advisor_tests::scene::Scene;

fn secret() -> Guard {
    Guard::for_words(["secret"], LetterCase::Ignore).with_reply("[no]")
}

/// A chain of a guard on both sides, with memory in this phase.
fn scene(answers: impl IntoIterator<Item = Answer>, mode: ToolCallStreaming, remembers: Phase) -> Scene {
    Scene::saying(answers, "a secret result")
        .in_mode(mode)
        .with(|client| client.advisor(secret().on_input()))
        .remembering(remembers)
        .with(|client| client.advisor(secret().on_output()))
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
        let scene = scene([looking(), telling(), Answer::from_text("Bye.")], mode, remembers);
        let out = read_stream(scene.turn("go")).await;
        let response = out.response();
        assert_eq!(response.text(), "It is a [no]");
        assert_eq!(out.fold().text(response.round()), response.text(), "{mode:?}");
        assert_eq!((&response.finish().reason, scene.runs().len()), (&FinishReason::ContentFilter, 1));
        let expected = ["go", "Well. (look)", "= a secret result", "It is a [no]"];
        assert_eq!(scene.remembered().await, expected, "{mode:?} {remembers}");
        assert_eq!(short(response.transcript()), expected);
        read_stream(scene.turn("Thanks.")).await.outcome.unwrap();
        assert_eq!(scene.sent(2), [&expected[..], &["Thanks."]].concat(), "{mode:?} {remembers}");
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
        let scene = scene(answers, mode, remembers);
        let response = read_stream(scene.turn("go")).await.outcome.unwrap();
        assert_eq!(response.finish().reason, FinishReason::ContentFilter);
        assert_eq!((scene.runs().len(), scene.model.calls()), (0, 1), "{mode:?} {remembers}");
        let remembered = scene.remembered().await;
        assert_eq!(remembered[..2], ["go", "a [no](look)"]);
        assert!(remembered[2].starts_with("= not started"), "{remembered:?}");
        assert_eq!(remembered[3..], [response.text()]);
        assert_eq!(read_stream(scene.turn("Thanks.")).await.outcome.unwrap().text(), "Bye.");
    }
}

/// A refused input reaches neither memory nor model nor tools, and the conversation goes on as if it had not been.
#[tokio::test]
async fn law_m4_m6_refused_input_is_not_remembered() {
    for (mode, remembers) in MODES.into_iter().flat_map(|mode| PLACES.map(|place| (mode, place))) {
        let answers = [looking(), Answer::from_text("Done."), Answer::from_text("Bye.")];
        let scene = scene(answers, mode, remembers);
        read_stream(scene.turn("go")).await.outcome.unwrap();
        let out = read_stream(scene.turn("Tell me the SECRET.")).await;
        let response = out.response();
        assert_eq!((response.text().as_str(), out.fold().text(response.round()).as_str()), ("[no]", "[no]"));
        assert_eq!(response.finish().reason, FinishReason::ContentFilter);
        assert_eq!((scene.runs().len(), scene.model.calls()), (1, 2));
        let before = ["go", "Well. (look)", "= a secret result", "Done."];
        assert_eq!(scene.remembered().await, before, "{mode:?} {remembers}");
        // Stored results and answers are no input of this turn.
        assert_eq!(read_stream(scene.turn("Thanks.")).await.outcome.unwrap().text(), "Bye.");
        assert_eq!(scene.remembered().await, [&before[..], &["Thanks.", "Bye."]].concat());
    }
}

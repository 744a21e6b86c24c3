//! The sentences that the loop writes itself: in the application's words, or not shown at all.

use advisor_chain::tools::ToolCallAdvisorBuilder;
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

fn calls() -> Answer {
    Answer::from_calls([("c1", "look", "{}"), ("c2", "look", "{}")])
}

/// German sentences.
fn german(reason: &FinishReason) -> String {
    match reason {
        FinishReason::Limit(Limit::Rounds(rounds)) => format!("Nach {rounds} Runden ist Schluss."),
        FinishReason::Limit(_) => String::from("Das war genug."),
        FinishReason::Length => String::from("Die Antwort wurde zu lang."),
        _ => String::from("Hier ist Schluss."),
    }
}

/// No sentence.
fn silent(_: &FinishReason) -> String {
    String::from(" \n")
}

/// The transcript of a turn, after the question, with these settings and answers.
async fn turn(builder: ToolCallAdvisorBuilder, answers: Vec<Answer>) -> Vec<String> {
    let model = ScriptedModel::new(answers);
    let advisor = builder.closing_text(german).build().unwrap();
    let run = go(client(&model, advisor).tool(tool("look", "sunny"))).await;
    let messages = match run.outcome.as_ref() {
        Ok(response) => &response.transcript,
        Err(error) => error.history().unwrap(),
    };
    assert_valid(messages);
    transcript_lines(messages).split_off(3)
}

#[tokio::test]
async fn the_loop_speaks_in_the_applications_words() {
    let limits = |limits: ToolLimits| ToolCallAdvisor::builder().limits(limits);
    let default = ToolLimits::default;
    assert_eq!(
        turn(limits(ToolLimits { rounds: Some(1), ..default() }), vec![calls()]).await,
        [
            "error c1: not started: the limit of 1 rounds in one turn was reached",
            "error c2: not started: the limit of 1 rounds in one turn was reached",
            "assistant: Nach 1 Runden ist Schluss."
        ]
    );
    assert_eq!(
        turn(limits(ToolLimits { calls: Some(1), ..default() }), vec![calls()]).await,
        [
            "result c1: sunny",
            "error c2: not started: the limit of 1 tool calls in one turn was reached",
            "assistant: Das war genug."
        ]
    );
    let tell = ToolLimits { calls: Some(1), on_limit: OnLimit::TellModel, ..default() };
    assert_eq!(
        turn(limits(tell), vec![calls(), Answer::from_text("Ok.")]).await,
        [
            "result c1: sunny",
            "error c2: not started: the limit of 1 tool calls in one turn was reached",
            "assistant: Ok."
        ]
    );
    let cut = Answer::new().call("c1", "look", "{}").call("c2", "look", "{}").finish(FinishReason::Length);
    assert_eq!(
        turn(ToolCallAdvisor::builder(), vec![cut]).await,
        [
            "error c1: not started: the answer was cut off (length limit)",
            "error c2: not started: the answer was cut off (length limit)",
            "assistant: Die Antwort wurde zu lang."
        ]
    );
    let denying = ToolCallAdvisor::builder().hooks(Denying);
    let denied = Answer::from_calls([("c1", "delete", "{}"), ("c2", "look", "{}")]);
    assert_eq!(
        turn(denying, vec![denied, Answer::from_text("Ok.")]).await,
        ["error c1: not started: the application left this call out", "result c2: sunny", "assistant: Ok."]
    );
    let failing = ToolCallAdvisor::builder().hooks(Watch(Stages::failing_at("after_round 1")));
    assert_eq!(
        turn(failing, vec![calls()]).await,
        ["error c1: not started: an error ended the turn", "error c2: not started: an error ended the turn"]
    );
}

/// Nothing is shown and the response is empty, but the stored turn ends with an assistant message.
#[tokio::test]
async fn law_m1_hidden_limit_leaves_an_assistant_message() {
    let sentence = "I stopped here: the limit of 1 rounds in one turn was reached.";
    for mode in MODES {
        let ledger = Ledger::default();
        let advisor = ToolCallAdvisor::builder()
            .limits(ToolLimits { rounds: Some(1), ..ToolLimits::default() })
            .streaming(mode)
            .closing_text(silent)
            .build()
            .unwrap();
        let model = ScriptedModel::new([calls()]);
        let run = go(client(&model, advisor).tool(tool("look", "sunny")).advisor(ledger.clone())).await;
        let response = run.response();
        assert_eq!(run.text(), "", "{mode:?}");
        assert_eq!((response.text().as_str(), response.blocks().count()), ("", 0), "{mode:?}");
        assert_eq!(response.finish.reason, FinishReason::Limit(Limit::Rounds(1)));
        for messages in [&response.transcript, &ledger.transcript()] {
            assert_valid(messages);
            let last = messages.last().unwrap();
            assert_eq!((last.role(), last.text().as_str()), (Role::Assistant, sentence), "{mode:?}");
        }
        assert_eq!(ledger.steps(), ["answer", "results", "end"]);
        let records = ledger.records();
        assert!(matches!(records.last().unwrap().step, Step::End(_)));
    }
}

/// Law S6: text that was not shown stays hidden when the turn is submitted again, in this process or another
/// one. It is still stored and sent.
#[tokio::test]
async fn law_s6_silently_ended_turn_stays_silent_on_resubmission() {
    let folder = tempfile::tempdir().unwrap();
    for (memory, mode) in
        [Phase::Round, Phase::Turn].into_iter().flat_map(|memory| MODES.map(|mode| (memory, mode)))
    {
        let store = SqliteStore::open(folder.path().join(format!("{memory:?}-{mode:?}"))).await.unwrap();
        let store: Arc<dyn ConversationStore> = Arc::new(store);
        let process = |text: fn(&FinishReason) -> String, answers: Vec<Answer>| {
            let limits = ToolLimits { rounds: Some(1), ..ToolLimits::default() };
            let advisor =
                ToolCallAdvisor::builder().limits(limits).streaming(mode).closing_text(text).build();
            let model = ScriptedModel::new(answers);
            let client = client(&model, advisor.unwrap())
                .advisor_in(memory, ChatMemoryAdvisor::new(Arc::clone(&store)))
                .tool(tool("look", "sunny"));
            (client.build().unwrap(), model)
        };
        let quiet = process(silent, vec![calls()]).0;
        // The words of whoever is asked again are not those that were given.
        let talking = process(german, vec![Answer::from_text("Next.")]);
        for client in [&quiet, &quiet, &talking.0] {
            let run = read(client.prompt().user("go").conversation("c").turn("t").stream()).await;
            let response = run.response();
            assert_eq!((run.text(), response.text()), (String::new(), String::new()), "{memory:?} {mode:?}");
            assert_eq!(response.blocks().count(), 0, "{memory:?} {mode:?}");
            assert_eq!(response.finish.reason, FinishReason::Limit(Limit::Rounds(1)), "{memory:?} {mode:?}");
        }
        talking.0.prompt().user("next").conversation("c").call().await.unwrap();
        let sent = &talking.1.prompts()[0].messages;
        assert_valid(sent);
        let lines = transcript_lines(sent);
        assert!(lines[lines.len() - 2].starts_with("assistant: I stopped here: "), "{lines:?}");
        // A sentence that was shown is shown again, as it was.
        let (talking, _) = process(german, vec![calls()]);
        let quiet = process(silent, Vec::new()).0;
        let shown = talking.prompt().user("go").conversation("d").turn("t").call().await.unwrap().text();
        let again = quiet.prompt().user("go").conversation("d").turn("t").call().await.unwrap().text();
        assert!(!shown.is_empty() && shown == again, "{memory:?} {mode:?}: {shown} {again}");
    }
}

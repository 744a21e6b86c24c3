//! Tests of advisors between the tool loop and a memory inside it. They answer without the model, ask twice,
//! fail or wait. Memory keeps the answer that the turn used, the same inside and outside the loop.

use std::sync::atomic::AtomicU32;

use advisor_tests::lines::{assert_valid, transcript_lines};
use advisor_tests::prelude::*;
use advisor_tests::scene::Scene;
use advisor_tests::tools::definition;
use futures::poll;

/// A chain that has `between` inside the loop and, if memory is there too, outside of memory. Its tool is `work`.
fn scene(place: Phase, between: impl StreamAdvisor, answers: impl IntoIterator<Item = Answer>) -> Scene {
    let echo = |arguments: Value| async move { Ok(format!("worked on {}", arguments["n"])) };
    let scene = Scene::new(answers).with(|client| client.tool(FnTool::new(definition("work"), echo)));
    scene.with(|client| client.advisor_in(Phase::Round, between)).remembering(place)
}

/// The stored conversation.
async fn remembered(scene: &Scene) -> Vec<String> {
    transcript_lines(&scene.transcript().await)
}

/// The messages of a request, which are valid.
fn sent(scene: &Scene, request: usize) -> Vec<String> {
    let messages = scene.model.prompts().swap_remove(request).messages;
    assert_valid(&messages);
    transcript_lines(&messages)
}

fn calling(text: &str, id: &str, n: u32) -> Answer {
    Answer::new().text(text).call(id, "work", &json!({ "n": n }).to_string()).finish(FinishReason::ToolCalls)
}

/// Asks twice in its first round and answers with the first of the two answers.
fn first_of_two() -> impl StreamAdvisor {
    let asked = AtomicU32::new(0);
    from_fn("first of two", move |request: ChatRequest, next: AdvisorChain| {
        let twice = asked.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            let first = next.next_call(request.clone()).await?;
            if twice {
                next.next_call(request).await?;
            }
            Ok(ChunkStream::answer(first))
        }
    })
    .with_placement(Placement::new(Phase::Round))
}

#[tokio::test]
async fn law_o4_m1_results_follow_the_answer_the_turn_used() {
    // The ids of the two answers differ, or are the same.
    for second in ["b", "a"] {
        let answers = [calling("One.", "a", 1), calling("Two.", second, 2), Answer::from_text("Done.")];
        let scene = scene(Phase::Round, first_of_two(), answers);
        assert_eq!(scene.ask("go").await.unwrap().text(), "Done.");
        let remembered = remembered(&scene).await;
        assert_eq!(sent(&scene, 2), remembered[..remembered.len() - 1], "memory is the prompt");
        let ran: Vec<_> = remembered.iter().filter(|line| line.contains("worked")).collect();
        assert_eq!(ran, ["result a: worked on 1"], "{remembered:?}");
        let place = remembered.iter().position(|line| line == ran[0]).unwrap();
        assert_eq!(
            remembered[place - 2..place],
            ["assistant: One.", "call a work {\"n\":1}"],
            "{remembered:?}"
        );
        let unused = remembered.iter().filter(|line| line.contains("not started")).count();
        assert_eq!(unused, 2, "the calls of the other passes are answered: {remembered:?}");
    }
}

#[tokio::test]
async fn law_o6_answer_given_to_user_is_remembered_last() {
    let answers = [Answer::from_text("One."), Answer::from_text("Two."), Answer::from_text("Next.")];
    let scene = scene(Phase::Round, first_of_two(), answers);
    assert_eq!(scene.ask("go").await.unwrap().text(), "One.");
    assert_eq!(remembered(&scene).await.last().unwrap(), "assistant: One.");
    assert_eq!(scene.ask("and").await.unwrap().text(), "Next.");
    assert_eq!(sent(&scene, 2)[3..], ["assistant: One.", "user: and"]);
}

/// Answers the first round with this response, for any request.
fn answers_first(finish: FinishReason, message: Message) -> impl StreamAdvisor {
    let asked = AtomicU32::new(0);
    from_fn("answers first", move |request: ChatRequest, next: AdvisorChain| {
        let mine = asked.fetch_add(1, Ordering::Relaxed) == 0;
        let (finish, message) = (finish.clone(), message.clone());
        async move {
            if mine {
                return Ok(request.answer(ChatResponse::new(0, message, finish)));
            }
            next.next_stream(request).await
        }
    })
    .with_placement(Placement::new(Phase::Round))
}

#[tokio::test]
async fn law_m1_m2_m4_o2_a_round_that_memory_never_saw_is_remembered() {
    let call = ToolCall::new("a", "work", "{\"n\":1}");
    let first = [
        (FinishReason::ToolCalls, Message::assistant_blocks(vec![call.into()])),
        (FinishReason::Paused, Message::assistant("Let me think.")),
    ];
    for (finish, message) in first {
        let mut logs = Vec::new();
        for place in PLACES {
            let between = answers_first(finish.clone(), message.clone());
            let scene = scene(place, between, [Answer::from_text("Done.")]);
            assert_eq!(scene.ask("go").await.unwrap().text(), "Done.");
            let remembered = remembered(&scene).await;
            assert_eq!(remembered[0], "user: go", "{place:?} {finish:?}");
            assert_eq!(sent(&scene, 0), remembered[..remembered.len() - 1], "{place:?} {finish:?}");
            logs.push(remembered);
        }
        assert_eq!(logs[0], logs[1], "{finish:?}");
    }
}

#[tokio::test]
async fn law_m4_intermediate_answer_is_remembered_at_every_memory_place() {
    for place in PLACES {
        let between = answers_first(FinishReason::Stop, Message::assistant("No."));
        let scene = scene(place, between, [Answer::from_text("Next.")]);
        assert_eq!(scene.ask("go").await.unwrap().text(), "No.");
        assert_eq!(remembered(&scene).await, ["user: go", "assistant: No."], "{place:?}");
        scene.ask("and").await.unwrap();
        assert_eq!(sent(&scene, 0), ["user: go", "assistant: No.", "user: and"], "{place:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn law_o2_o6_m4_turn_timed_out_before_memory_is_remembered() {
    for place in PLACES {
        let slow = from_fn("slow", |_: ChatRequest, _: AdvisorChain| std::future::pending())
            .with_placement(Placement::new(Phase::Round));
        let limits = ToolLimits { turn_timeout: Some(Duration::from_secs(5)), ..ToolLimits::default() };
        let tool_loop = ToolCallAdvisor::builder().limits(limits).build().unwrap();
        let scene = scene(place, slow, []).with(|client| client.advisor(tool_loop));
        let response = scene.ask("go").await.unwrap();
        assert_eq!(response.finish.reason, FinishReason::Limit(Limit::Time(5000)));
        let remembered = remembered(&scene).await;
        assert_eq!(remembered.len(), 2, "{place:?}: {remembered:?}");
        assert!(remembered[1].starts_with("assistant: I stopped here"), "{place:?}: {remembered:?}");
    }
}

#[tokio::test]
async fn law_o5_calls_of_unused_answer_are_answered_not_started() {
    let twice = from_fn("twice", |request: ChatRequest, next: AdvisorChain| async move {
        next.next_call(request.clone()).await?;
        next.next_stream(request).await
    })
    .with_placement(Placement::new(Phase::Round));
    let answers = [calling("One.", "a", 1), Answer::refused(Error::new(ErrorKind::Connection, "broken"))];
    let scene = scene(Phase::Round, twice, answers);
    scene.ask("go").await.unwrap_err();
    let remembered = remembered(&scene).await;
    assert!(remembered[3].starts_with("error a: not started"), "{remembered:?}");
}

#[tokio::test]
async fn law_o3_turn_ends_when_all_inside_root_are_done() {
    let gate = Gate::new();
    let passed = gate.clone();
    let slow = from_fn("slow", move |request: ChatRequest, next: AdvisorChain| {
        let gate = passed.clone();
        async move {
            Ok(next.next_stream(request).await?.on_completed(|response| async move {
                gate.pass().await;
                Ok(response)
            }))
        }
    })
    .with_placement(Placement::new(Phase::Round));
    let scene = scene(Phase::Round, slow, ["One.", "Two."].map(Answer::from_text));
    let mut turn = scene.turn("go").with_on_drop(OnDrop::Rollback);
    while let std::task::Poll::Ready(item) = poll!(turn.next()) {
        item.unwrap().unwrap();
    }
    // The answer is stored with the end of the turn, but the turn is not over.
    assert_eq!(remembered(&scene).await.len(), 2);
    assert_eq!(scene.ask("too soon").await.unwrap_err().kind(), ErrorKind::ConversationBusy);
    drop(turn);
    assert_eq!(remembered(&scene).await, Vec::<String>::new(), "it can still be rolled back");
    gate.release();
    scene.ask("again").await.unwrap();
    assert_eq!(remembered(&scene).await, ["user: again", "assistant: Two."]);
}

fn result(id: &str) -> Message {
    Message::tool(ToolResult::new(&ToolCall::new(id, "work", ""), vec!["mine".into()]))
}

#[tokio::test]
async fn caller_results_can_be_resent_after_model_failure() {
    let model = ScriptedModel::new([
        calling("Do it.", "a", 1),
        Answer::refused(Error::new(ErrorKind::Connection, "broken")),
        Answer::from_text("Thanks."),
    ]);
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    // Without a loop, calls are the caller's.
    let client = ChatClient::builder(model.clone()).advisor(memory.clone()).build().unwrap();
    let turn = |message: Message| client.prompt().messages([message]).conversation("c").call();
    turn(Message::user("go")).await.unwrap();
    assert_eq!(turn(result("a")).await.unwrap_err().kind(), ErrorKind::Connection);
    assert_eq!(turn(result("a")).await.unwrap().text(), "Thanks.");
    let sent = transcript_lines(&model.prompts()[2].messages);
    assert_eq!(sent, ["user: go", "assistant: Do it.", "call a work {\"n\":1}", "result a: mine"]);
    let again = turn(result("a")).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Configuration, "once they are answered, they are");
}

/// What is sent and remembered is masked; the transcript of the turn has the caller's own words.
#[tokio::test]
async fn law_m4_masked_input_is_sent_and_stored_in_both_places() {
    for place in PLACES {
        let model = ScriptedModel::new([Answer::from_text("Noted.")]);
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let mask = |request: ChatRequest, next: AdvisorChain| async move {
            next.next_stream(request.map_user_text(|text| text.replace("1234", "****"))).await
        };
        let client = ChatClient::builder(model.clone())
            .advisor_in(Phase::Turn, from_fn("mask", mask))
            .advisor(ToolCallAdvisor::new())
            .advisor_in(place, memory.clone())
            .build()
            .unwrap();
        let response = client.prompt().user("My PIN is 1234.").conversation("c").call().await.unwrap();
        let sent = &model.prompts()[0].messages;
        let remembered = memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        let users_words = |messages: &MessageList| {
            messages.iter().find(|message| message.role() == Role::User).unwrap().text()
        };
        assert_eq!(users_words(sent), "My PIN is ****.", "{place:?}");
        assert_eq!(users_words(&remembered), "My PIN is ****.", "{place:?}");
        assert_eq!(users_words(&response.transcript), "My PIN is 1234.", "{place:?}");
    }
}

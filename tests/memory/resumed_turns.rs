//! Tests of turns that continue after a seemingly last answer, of turns that are submitted twice, and of
//! conversations that are named late. No shown text is lost, no entry is stored twice, and no conversation
//! stays busy.

use std::sync::atomic::AtomicU32;

use advisor_tests::prelude::*;
use advisor_tests::tools::tool;
use futures::poll;

fn key(conversation: &str) -> ConversationKey {
    ConversationKey::new(conversation).unwrap()
}

fn memory() -> ChatMemoryAdvisor {
    ChatMemoryAdvisor::new(InMemoryStore::new())
}

fn looped(model: &ScriptedModel, place: Phase, memory: &ChatMemoryAdvisor) -> ChatClientBuilder {
    ChatClient::builder(model.clone()).advisor(ToolCallAdvisor::new()).advisor_in(place, memory.clone())
}

async fn remembered(memory: &ChatMemoryAdvisor, conversation: &str) -> Vec<String> {
    let transcript = memory.transcript(&key(conversation)).await.unwrap();
    assert_eq!(validate_transcript(&transcript), [], "{transcript:?}");
    transcript.iter().map(line).collect()
}

fn line(message: &Message) -> String {
    format!("{:?}: {}", message.role(), message.text()).to_lowercase()
}

fn broken() -> Error {
    Error::new(ErrorKind::Connection, "broken")
}

/// Reads until the turn only waits.
fn read_what_is_there(turn: &mut TurnStream) {
    while let Some(Some(item)) = turn.next().now_or_never() {
        item.unwrap();
    }
}

/// Requests a draft that is not shown, then the shown answer.
fn drafts(phase: Phase) -> impl StreamAdvisor {
    from_fn("drafts", |request: ChatRequest, next: AdvisorChain| async move {
        next.next_call(request.clone()).await?;
        next.next_stream(request).await
    })
    .with_placement(Placement::new(phase))
}

#[tokio::test]
async fn law_k3_m4_text_shown_after_first_answer_survives_drop() {
    for (place, between) in
        [(Phase::Round, Phase::Round), (Phase::Round, Phase::Turn), (Phase::Turn, Phase::Turn)]
    {
        let model = ScriptedModel::new([
            Answer::from_text("A draft."),
            Answer::new().text("What was read").hang(),
            Answer::from_text("Another draft."),
            Answer::from_text("Next."),
        ]);
        let memory = memory();
        let client = looped(&model, place, &memory).advisor_in(between, drafts(between)).build().unwrap();
        let mut turn = client.prompt().user("go").conversation("c").stream();
        for _ in 0..20 {
            read_what_is_there(&mut turn);
        }
        drop(turn);
        let shown = "assistant: what was read [interrupted]";
        assert_eq!(remembered(&memory, "c").await.last().unwrap(), shown, "{place:?} {between:?}");
        client.prompt().user("next").conversation("c").call().await.unwrap();
        let sent = model.prompts()[2].messages.iter().map(line).collect::<Vec<_>>();
        assert!(sent.iter().any(|line| line == shown), "{place:?} {between:?}: {sent:?}");
    }
}

#[tokio::test]
async fn law_k3_open_round_text_survives_after_later_round_stored() {
    let model = ScriptedModel::new([Answer::new().text("Shown live").hang(), Answer::from_text("Hidden.")]);
    let memory = memory();
    let hedges = from_fn("hedges", |request: ChatRequest, next: AdvisorChain| async move {
        let shown = next.next_stream(request.clone()).await?;
        next.next_call(request).await?;
        Ok(shown)
    })
    .with_placement(Placement::new(Phase::Round));
    let client = ChatClient::builder(model)
        .advisor(ToolCallAdvisor::new())
        .advisor(hedges)
        .advisor(memory.clone())
        .build()
        .unwrap();
    let mut turn = client.prompt().user("go").conversation("c").stream();
    for _ in 0..20 {
        read_what_is_there(&mut turn);
    }
    drop(turn);
    assert_eq!(remembered(&memory, "c").await.last().unwrap(), "assistant: shown live [interrupted]");
}

/// Asks twice and gives the first answer if the second could not be had.
fn second_opinion(phase: Phase) -> impl StreamAdvisor {
    from_fn("second opinion", |request: ChatRequest, next: AdvisorChain| async move {
        let first = next.next_call(request.clone()).await?;
        match next.next_call(request.clone()).await {
            Ok(second) => Ok(request.answer(second)),
            Err(_) => Ok(ChunkStream::answer(first)),
        }
    })
    .with_placement(Placement::new(phase))
}

#[tokio::test]
async fn law_o6_continued_turn_ends_and_frees_its_conversation() {
    for place in PLACES {
        for with_loop in [true, false] {
            let answers =
                [Answer::from_text("First."), Answer::refused(broken()), Answer::from_text("Next.")];
            let model = ScriptedModel::new(answers);
            let memory = memory();
            let mut builder = ChatClient::builder(model.clone()).advisor(second_opinion(Phase::Turn));
            if with_loop {
                builder = builder.advisor(ToolCallAdvisor::new());
            }
            let client = builder.advisor_in(place, memory.clone()).build().unwrap();
            let mut turn = client.prompt().user("go").conversation("c").stream();
            let mut last = None;
            while let Some(item) = turn.next().await {
                last = item.unwrap().completed().map(|response| response.text());
            }
            assert_eq!(last.as_deref(), Some("First."));
            let log = remembered(&memory, "c").await;
            assert_eq!(log, ["user: go", "assistant: first."], "{place:?} {with_loop}");
            // The stream is still there.
            let next = client.prompt().user("next").conversation("c").stream().next().await.unwrap();
            next.unwrap();
            drop(turn);
        }
    }
}

#[tokio::test]
async fn law_m5_nested_turn_answer_stays_in_nested_turn() {
    for place in PLACES {
        let classifier = ChatClient::builder(ScriptedModel::new([Answer::from_text("A secret.")]))
            .advisor(from_fn("fails after", |request: ChatRequest, next: AdvisorChain| async move {
                Ok(next.next_stream(request).await?.on_completed(|_| async { Err(broken()) }))
            }))
            .build()
            .unwrap()
            .chain()
            .clone();
        let asks = from_fn("asks a classifier", move |request: ChatRequest, next: AdvisorChain| {
            let classifier = classifier.clone();
            async move {
                classifier.next_call(ChatRequest::new(Message::user("which?"))).await?;
                next.next_stream(request).await
            }
        })
        .with_placement(Placement::new(Phase::Round));
        let memory = memory();
        let model = ScriptedModel::new([]);
        let client = looped(&model, place, &memory).advisor(asks).build().unwrap();
        client.prompt().user("go").conversation("c").call().await.unwrap_err();
        assert_eq!(remembered(&memory, "c").await, ["user: go", "assistant: [interrupted]"], "{place:?}");
    }
}

/// Lets only the first turn begin.
struct OnlyOnce(AtomicU32);

#[async_trait]
impl LoopHooks for OnlyOnce {
    async fn loop_start(&self, request: ChatRequest) -> Result<ChatRequest> {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            1 => Err(Error::new(ErrorKind::Advisor, "not twice")),
            _ => Ok(request),
        }
    }
}

#[tokio::test]
async fn law_m5_turn_submitted_twice_does_not_free_running_one() {
    for dropped in [true, false] {
        let model = ScriptedModel::new([
            Answer::new().text("a").hang(),
            Answer::from_text("b"),
            Answer::from_text("c"),
        ]);
        let tool_loop = ToolCallAdvisor::builder();
        let tool_loop = if dropped { tool_loop } else { tool_loop.hooks(OnlyOnce(AtomicU32::new(0))) };
        let client =
            ChatClient::builder(model).advisor(tool_loop.build().unwrap()).advisor(memory()).build().unwrap();
        let id = TurnId::random();
        let submit = || client.prompt().user("go").turn(id.clone()).conversation("c").stream();
        let mut first = submit();
        read_what_is_there(&mut first);
        let mut again = submit();
        if dropped {
            let _ = poll!(again.next());
            drop(again);
        } else {
            again.next().await.unwrap().unwrap_err();
        }
        let other = client.prompt().user("other").conversation("c").call().await.unwrap_err();
        assert_eq!(other.kind(), ErrorKind::ConversationBusy, "dropped: {dropped}");
    }
}

#[tokio::test]
async fn law_m4_an_answer_is_stored_once_whatever_it_ends() {
    for place in PLACES {
        let paused = Answer::new().text("Part.").finish(FinishReason::Paused);
        let memory = memory();
        // Without a loop, a paused answer ends the turn.
        let client =
            ChatClient::builder(ScriptedModel::new([paused])).advisor_in(place, memory.clone()).build();
        client.unwrap().prompt().user("go").conversation("c").call().await.unwrap();
        assert_eq!(remembered(&memory, "c").await, ["user: go", "assistant: part."], "{place:?}");
    }
}

#[tokio::test]
async fn law_m5_conversation_named_last_remembers_the_turn() {
    let model = ScriptedModel::from_fn(|_| Answer::from_text("ok"));
    let routed = memory();
    let route = || {
        from_fn("route", |mut request: ChatRequest, next: AdvisorChain| async move {
            request.conversation = Some(key("tenant"));
            next.next_stream(request).await
        })
    };
    let client = looped(&model, Phase::Round, &routed).advisor_in(Phase::Round, route());
    // Advisors of one phase stand in the order in which they were added: memory first, the route inside it.
    client.build().unwrap().prompt().user("go").conversation("c").call().await.unwrap();
    assert_eq!(remembered(&routed, "c").await, ["user: go", "assistant: ok"]);

    let late = memory();
    let client = ChatClient::builder(model)
        .advisor(ToolCallAdvisor::new())
        .advisor_in(Phase::Round, route())
        .advisor(late.clone())
        .build()
        .unwrap();
    client.prompt().user("go").conversation("c").call().await.unwrap();
    assert_eq!(remembered(&late, "tenant").await, ["user: go", "assistant: ok"]);
    assert!(remembered(&late, "c").await.is_empty(), "nothing leaks into the conversation named before");
}

#[tokio::test]
async fn law_m1_rephrased_retry_sends_no_consecutive_user_messages() {
    for place in PLACES {
        let model = ScriptedModel::new([Answer::refused(broken()), Answer::from_text("Done.")]);
        let memory = memory();
        let retry = from_fn("retry", |request: ChatRequest, next: AdvisorChain| async move {
            match next.next_stream(request.clone()).await {
                Err(_) => next.next_stream(request).await,
                ok => ok,
            }
        })
        .with_placement(Placement::new(Phase::Round));
        let wording = from_fn("wording", |mut request: ChatRequest, next: AdvisorChain| async move {
            let asked: Vec<_> = request.messages.iter().map(|message| message.text() + "!").collect();
            request.messages = asked.into_iter().map(Message::user).collect();
            next.next_stream(request).await
        })
        .with_placement(Placement::new(Phase::Round));
        let client = ChatClient::builder(model.clone())
            .advisor(ToolCallAdvisor::new())
            .advisor(retry)
            .advisor(wording)
            .advisor_in(place, memory.clone())
            .build()
            .unwrap();
        client.prompt().user("go").conversation("c").call().await.unwrap();
        for prompt in model.prompts() {
            assert_eq!(validate_transcript(&prompt.messages), [], "{place:?}: {:?}", prompt.messages);
        }
        assert_eq!(remembered(&memory, "c").await.last().unwrap(), "assistant: done.", "{place:?}");
    }
}

#[tokio::test]
async fn law_k3_rollback_covers_turn_longer_than_window() {
    let calls = |id: &'static str| Answer::from_calls([(id, "work", "{}")]);
    let model = ScriptedModel::new([
        calls("a"),
        calls("b"),
        calls("c"),
        Answer::from_text("Regrettable."),
        Answer::from_text("Fresh."),
    ]);
    let memory = memory().with_window(Window::Messages(2));
    let waits = from_fn("waits", |request: ChatRequest, next: AdvisorChain| async move {
        Ok(next.next_stream(request).await?.on_completed(|response| async move {
            if response.text() == "Regrettable." {
                std::future::pending::<()>().await;
            }
            Ok(response)
        }))
    });
    let client =
        looped(&model, Phase::Round, &memory).advisor(waits).tool(tool("work", "worked")).build().unwrap();
    let mut turn = client.prompt().user("go").on_drop(OnDrop::Rollback).conversation("c").stream();
    for _ in 0..50 {
        read_what_is_there(&mut turn);
    }
    drop(turn);
    client.prompt().user("again").conversation("c").call().await.unwrap();
    let all = memory.with_window(Window::All);
    let transcript = all.transcript(&key("c")).await.unwrap();
    let roles: Vec<_> = transcript.iter().map(Message::role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant], "{transcript:?}");
}

#[tokio::test]
async fn law_k3_a_rollback_counts_until_the_end_was_seen() {
    let gone = Error::new(ErrorKind::Cancelled, "the provider cancelled it");
    for answer in [
        Answer::from_text("Regrettable."),
        Answer::new().text("Half").error(broken()),
        Answer::new().text("Half").error(gone),
    ] {
        rolled_back_while_it_ends(answer).await;
    }
}

/// Without a loop, the root records the end; a recorder takes its time.
async fn rolled_back_while_it_ends(answer: Answer) {
    let model = ScriptedModel::new([answer]);
    let memory = memory();
    let gate = Arc::new(Gate::new());
    let slow = from_fn("slow recorder", move |request: ChatRequest, next: AdvisorChain| {
        let gate = Arc::clone(&gate);
        async move {
            request.turn.add_recorder(Arc::new(Slow(gate)));
            next.next_stream(request).await
        }
    });
    let client = ChatClient::builder(model).advisor(memory.clone()).advisor(slow).build().unwrap();
    let mut turn = client.prompt().user("go").on_drop(OnDrop::Rollback).conversation("c").stream();
    for _ in 0..20 {
        read_what_is_there(&mut turn);
    }
    assert!(poll!(turn.next()).is_pending(), "the end is being recorded");
    drop(turn);
    assert!(remembered(&memory, "c").await.is_empty());
}

struct Slow(Arc<Gate>);

#[async_trait]
impl TurnRecorder for Slow {
    async fn record(&self, _: &Record) -> Result<()> {
        self.0.pass().await;
        Ok(())
    }
}

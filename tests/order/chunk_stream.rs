//! Tests of the stream of chunks alone: its end, the work at its end, and the edits of an editor.

use std::task::Poll;

use advisor_core::ChunkFold;
use advisor_tests::prelude::*;
use futures::stream::FusedStream;
use futures::{poll, stream};

fn answer(text: &str) -> ChatResponse {
    ChatResponse::new(1, Message::assistant(text), FinishReason::Stop)
}

async fn items(mut stream: ChunkStream) -> Vec<Result<Chunk>> {
    let mut items = Vec::new();
    assert!(!stream.is_terminated());
    while let Some(item) = stream.next().await {
        items.push(item);
    }
    assert!(stream.next().await.is_none(), "nothing follows the end");
    assert!(stream.is_terminated());
    items
}

fn ends(items: &[Result<Chunk>]) -> usize {
    items.iter().filter(|item| matches!(item, Err(_) | Ok(Chunk::Completed(_)))).count()
}

/// A stream ends once, with the first `Completed` or error; work runs only before a `Completed`.
#[tokio::test]
async fn law_s1_stream_without_completed_fails_and_runs_no_work() {
    let completed = |text: &str| Ok(Chunk::Completed(answer(text)));
    let broken = || Err(Error::new(ErrorKind::Connection, "the connection broke"));
    for (chunks, end, runs) in [
        (vec![completed("a"), completed("b")], Ok("a"), 1),
        (vec![broken(), completed("late")], Err(ErrorKind::Connection), 0),
        (vec![], Err(ErrorKind::Unfinished), 0),
    ] {
        let journal = Journal::new();
        let in_work = journal.clone();
        let stream = ChunkStream::new(stream::iter(chunks)).on_completed(move |response| async move {
            in_work.record("work");
            Ok(response)
        });
        let [ended] = &items(stream).await[..] else { panic!("{end:?}: more than an end") };
        let ended = ended.as_ref().map(|chunk| chunk.completed().unwrap().text());
        assert_eq!(
            ended.as_deref().map_err(|error| (error.kind(), error.emitted())),
            end.map_err(|kind| (kind, false))
        );
        journal.assert_count("work", runs);
    }
}

#[tokio::test]
async fn law_s1_work_added_after_end_revives_nothing() {
    let ended = || async {
        let mut stream = ChunkStream::answer(answer("hi"));
        while stream.next().await.is_some() {}
        stream
    };
    let unexpected = async |_| panic!("it ran after the end");
    for mut stream in [
        ended().await.on_completed(unexpected),
        ended().await.inspect_chunks(|chunk| panic!("it saw {chunk:?} after the end")),
        ended().await.edit_with(|chunk: Chunk, _: &mut EditedChunks<'_>| {
            panic!("it was given {chunk:?} after the end")
        }),
    ] {
        assert!(stream.next().await.is_none());
        assert!(stream.is_terminated());
    }
}

#[tokio::test]
async fn error_of_work_added_late_counts_as_emitted() {
    let mut stream = ChunkStream::answer(answer("hi")).on_completed(|response| async {
        tokio::task::yield_now().await;
        Ok(response)
    });
    while let Some(chunk) = stream.next().now_or_never() {
        chunk.unwrap().unwrap();
    }
    let failing = stream.on_completed(|_| async { Err(Error::new(ErrorKind::Store, "it is full")) });
    let items: Vec<_> = failing.collect().await;
    assert!(items[0].as_ref().unwrap_err().emitted());
}

/// An advisor that does not say its name.
struct Unnamed<T>(T);

impl AdvisorInfo for Unnamed<Vec<String>> {}

#[async_trait]
impl StreamAdvisor for Unnamed<Vec<String>> {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        next.next_stream(request).await
    }
}

#[test]
fn an_advisor_has_the_name_of_its_type() {
    struct Local;
    impl AdvisorInfo for Local {}
    assert_eq!(Unnamed(vec![String::new()]).name(), "Unnamed");
    assert_eq!(Local.name(), "Local");
}

#[test]
fn an_empty_text_is_an_empty_answer() {
    let response = ChatResponse::from("");
    assert_eq!(response.finish.reason, FinishReason::Empty);
    assert!(response.message().blocks().is_empty());
}

/// A cache inside the tool loop: the second turn's first answer comes from the first turn.
#[tokio::test]
async fn law_s3_answer_of_earlier_turn_gets_own_round() {
    let earlier = ChatResponse::new(1, Message::assistant("cached"), FinishReason::Stop);
    let given = earlier.clone();
    let cache = from_fn("cache", move |request: ChatRequest, next: AdvisorChain| {
        let given = given.clone();
        async move {
            let Some(last) = request.messages.last() else { return next.next_stream(request).await };
            if last.text() == "asked before" {
                Ok(request.answer(given))
            } else {
                next.next_stream(request).await
            }
        }
    });
    let chain = ChatClient::builder(ScriptedModel::new([Answer::from_text("new")]))
        .advisor(cache)
        .build()
        .unwrap()
        .chain()
        .clone();
    let asking = ChatRequest::new(Message::user("something else"));
    let again = ChatRequest { messages: Message::user("asked before").into(), ..asking.clone() };
    let mut fold = ChunkFold::default();
    let mut responses = Vec::new();
    for request in [asking, again] {
        for item in items(chain.next_stream(request).await.unwrap()).await {
            let chunk = item.unwrap();
            if let Chunk::Opened { block, .. } = &chunk {
                assert!(!fold.has_opened(*block), "{block} opens a second time in this turn");
            }
            fold.push(&chunk);
            responses.extend(chunk.completed().cloned());
        }
    }
    assert_eq!([fold.text(1), fold.text(2)], ["new", "cached"]);
    assert_eq!(responses[1], earlier.in_round(2));
}

#[tokio::test]
async fn law_o1_work_runs_in_order_before_completed() {
    let journal = Journal::new();
    let gate = Gate::new();
    let [first, second] = [journal.clone(), journal.clone()];
    let held = gate.clone();
    let mut stream = ChunkStream::answer(answer("hi"))
        .on_completed(move |response| async move {
            first.record("inner begins");
            held.pass().await;
            first.record("inner ends");
            Ok(response)
        })
        .on_completed(move |response| async move {
            second.record("outer");
            Ok(response.with_finish(FinishReason::Length))
        });
    for _ in 0..3 {
        assert!(stream.next().await.unwrap().unwrap().completed().is_none());
    }
    assert!(matches!(poll!(stream.next()), Poll::Pending), "completed waits for the work");
    assert_eq!(journal.labels(), ["inner begins"]);
    gate.release();
    let response = stream.next().await.unwrap().unwrap().completed().unwrap().clone();
    assert_eq!(journal.labels(), ["inner begins", "inner ends", "outer"]);
    assert_eq!(response.finish.reason, FinishReason::Length, "each sees what the one before gave");
}

#[tokio::test]
async fn failing_work_stops_the_rest_and_carries_answer() {
    let journal = Journal::new();
    let outer = journal.clone();
    let stream = ChunkStream::answer(answer("hi"))
        .on_completed(|_| async { Err(Error::new(ErrorKind::NotPersisted, "the store is gone")) })
        .on_completed(move |response| async move {
            outer.record("outer");
            Ok(response)
        });
    let items = items(stream).await;
    let error = items.last().unwrap().as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotPersisted);
    assert_eq!(error.partial().unwrap().text(), "hi");
    assert!(error.emitted(), "text was shown before it failed");
    assert_eq!(journal.count("outer"), 0);
    assert_eq!(ends(&items), 1);
}

/// A stream that completes at once, and records when its source is dropped.
fn watched(journal: &Journal) -> ChunkStream {
    struct Source(Journal);
    impl Drop for Source {
        fn drop(&mut self) {
            self.0.record("source released");
        }
    }
    let held = Source(journal.clone());
    ChunkStream::new(stream::iter([Ok(Chunk::Completed(answer("hi")))]).inspect(move |_| {
        let _ = &held;
    }))
}

#[tokio::test]
async fn law_r2_when_completed_is_out_the_source_is_gone() {
    let journal = Journal::new();
    let mut stream = watched(&journal);
    assert!(stream.next().await.unwrap().unwrap().completed().is_some());
    assert_eq!(journal.labels(), ["source released"], "the stream itself is still there");
    drop(stream);
}

#[tokio::test]
async fn law_o3_inspector_sees_end_after_inner_work_is_done() {
    let journal = Journal::new();
    let note = |what: &'static str| {
        let journal = journal.clone();
        move |chunk: &Chunk| {
            if chunk.completed().is_some() {
                journal.record(what);
            }
        }
    };
    let work = |what: &'static str| {
        let journal = journal.clone();
        move |response| async move {
            journal.record(format!("{what} begins"));
            tokio::task::yield_now().await;
            journal.record(format!("{what} ends"));
            Ok(response)
        }
    };
    let stream = watched(&journal)
        .inspect_chunks(note("inner look"))
        .on_completed(work("inner work"))
        .inspect_chunks(note("look between"))
        .on_completed(work("outer work"))
        .inspect_chunks(note("outer look"));
    items(stream).await;
    let order = [
        "source released", "inner look", "inner work begins", "inner work ends", "look between",
        "outer work begins", "outer work ends", "outer look",
    ];
    assert_eq!(journal.labels(), order);
}

#[tokio::test]
async fn law_s2_chunk_is_emitted_in_poll_it_arrived() {
    let gate = Gate::new();
    let model =
        ScriptedModel::new([Answer::new().text("a").gate(&gate).text("b").finish(FinishReason::Stop)]);
    let looking = from_fn("looking", |request, next: AdvisorChain| async move {
        Ok(next.next_stream(request).await?.inspect_chunks(|_| {}))
    });
    let editing = from_fn("editing", |request, next: AdvisorChain| async move {
        Ok(next
            .next_stream(request)
            .await?
            .edit_with(|chunk: Chunk, out: &mut EditedChunks<'_>| out.push(chunk)))
    });
    let chain = ChatClient::builder(model).advisor(looking).advisor(editing).build().unwrap().chain().clone();
    let mut stream = chain.next_stream(ChatRequest::new(Message::user("?"))).await.unwrap();
    let next = |stream: &mut ChunkStream| stream.next().now_or_never().flatten().map(Result::unwrap);
    assert!(matches!(next(&mut stream), Some(Chunk::Opened { .. })));
    assert_eq!(next(&mut stream).unwrap().text(), Some("a"), "the first text is out while the model waits");
    assert!(next(&mut stream).is_none());
    gate.release();
    assert_eq!(next(&mut stream).unwrap().text(), Some("b"));
}

#[tokio::test]
async fn law_r4_advisor_without_inspection_adds_no_layer() {
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let source = stream::iter([Ok(Chunk::Completed(answer("hi")))]).inspect(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let plain = ChunkStream::new(source);
    let size = |stream: &ChunkStream| format!("{stream:?}");
    assert!(size(&plain).contains("stages: 0"));
    let with_work = plain.on_completed(|response| async { Ok(response) });
    assert!(size(&with_work).contains("stages: 1"), "the work is a list entry, not a stream around a stream");
    let with_look = with_work.inspect_chunks(|_| {});
    assert!(size(&with_look).contains("stages: 2"), "and so is a look");
    items(with_look).await;
    assert_eq!(polls.load(Ordering::Relaxed), 1);
}

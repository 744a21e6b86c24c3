//! The suite passes right advisors, and finds the fault of each wrong one.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use advisor_conformance::advisor as clauses;
use advisor_core::{
    AdvisorChain, Block, BlockDelta, ChatRequest, ChatResponse, Chunk, ChunkEditor, ChunkFold, ChunkStream,
    EditedChunks, Error, ErrorKind, FinishReason, HoldBack, Message, Phase, Placement, Result, Role,
    StreamAdvisor, Text, ToolDefinition, from_fn,
};
use clauses::Declaration::{AnswersItself, EditsAnswers, HoldsBackBlocks, HoldsBackBytes};
use clauses::{Declaration, Subject};
use futures::{FutureExt, Stream, StreamExt, TryStreamExt, future, stream};
use serde_json::{Value, json};
use tool_call_advisor::FnTool;

/// An advisor that makes another stream of each answer.
fn changes<F, S>(change: F) -> impl StreamAdvisor
where
    F: Fn(ChunkStream) -> S + Clone + Send + Sync + 'static,
    S: Stream<Item = Result<Chunk>> + Send + 'static,
{
    from_fn("wrong", move |request: ChatRequest, next: AdvisorChain| {
        let change = change.clone();
        async move { Ok(ChunkStream::new(change(next.next_stream(request).await?))) }
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

/// An advisor that makes another `ChunkStream` of each answer.
fn wraps(around: impl Fn(ChunkStream) -> ChunkStream + Clone + Send + Sync + 'static) -> impl StreamAdvisor {
    from_fn("wrong", move |request: ChatRequest, next: AdvisorChain| {
        let around = around.clone();
        async move { Ok(around(next.next_stream(request).await?)) }
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

/// Returns whether a chunk is the completion.
fn is_end(item: &Result<Chunk>) -> bool {
    item.as_ref().is_ok_and(|chunk| chunk.completed().is_some())
}

fn passes() -> impl StreamAdvisor {
    wraps(|answer| answer)
}

mod one_that_passes_everything {
    advisor_conformance::advisor_conformance!(super::passes());
}

mod one_that_rebuilds_the_stream {
    advisor_conformance::advisor_conformance!(super::changes(|answer| answer));
}

/// Holds back everything, which it declares.
mod one_that_buffers_and_says_so {
    advisor_conformance::advisor_conformance!(super::buffers(), declares HoldsBackAnswers);
}

mod one_that_answers_itself {
    use advisor_core::{AdvisorChain, ChatRequest, from_fn};
    advisor_conformance::advisor_conformance!(
        from_fn("closed", |request: ChatRequest, _: AdvisorChain| async move { Ok(request.answer("Closed.")) }),
        declares AnswersItself
    );
}

/// Collects the answer, and returns it when it has ended.
fn buffers() -> impl StreamAdvisor {
    changes(|answer| answer.collect::<Vec<_>>().map(stream::iter).flatten_stream())
}

/// Keeps the last chunk until the next one arrives.
fn lags() -> impl StreamAdvisor {
    changes(|answer| {
        let mut kept = VecDeque::new();
        answer
            .map(Some)
            .chain(stream::iter([None]))
            .filter_map(move |item| {
                kept.extend(item);
                let is_over = kept.iter().any(|item: &Result<Chunk>| is_end(item) || item.is_err());
                let out: Vec<_> = if is_over {
                    kept.drain(..).collect()
                } else if kept.len() > 1 {
                    kept.pop_front().into_iter().collect()
                } else {
                    Vec::new()
                };
                future::ready(Some(stream::iter(out)))
            })
            .flatten()
    })
}

/// Lets other tasks run before each chunk.
fn yields() -> impl StreamAdvisor {
    changes(|answer| {
        answer.then(|item| async {
            tokio::task::yield_now().await;
            item
        })
    })
}

/// Holds back the last bytes of each text.
fn holds_back(bytes: usize) -> impl StreamAdvisor {
    wraps(move |answer| {
        answer.edit_text(HoldBack::Bytes(bytes), move |text| {
            let length = text.len();
            let until = (length.saturating_sub(bytes)..=length).find(|at| text.is_char_boundary(*at));
            text.pass(until.unwrap_or_default());
        })
    })
}

mod one_that_holds_back_as_declared {
    advisor_conformance::advisor_conformance!(super::holds_back(12), declares HoldsBackBytes(12));
}

/// Leaves out citations.
fn forgets() -> impl StreamAdvisor {
    wraps(|answer| {
        answer.edit_with(|chunk: Chunk, out: &mut EditedChunks<'_>| {
            let is_known = !matches!(&chunk, Chunk::Opened { head, .. } if head.kind == advisor_core::BlockKind::Citation);
            if is_known {
                out.push(chunk);
            }
        })
    })
}

fn shouted(chunk: Chunk) -> Chunk {
    match chunk {
        Chunk::Delta { block, delta: BlockDelta::Text(text) } => {
            Chunk::Delta { block, delta: BlockDelta::Text(text.to_uppercase().into()) }
        }
        chunk => chunk,
    }
}

/// Changes pieces, and neither blocks nor the response.
fn shouts() -> impl StreamAdvisor {
    changes(|answer| answer.map_ok(shouted))
}

/// Changes the answer only when it is complete.
fn reports_other_words() -> impl StreamAdvisor {
    wraps(|answer| {
        answer.on_completed(|response| async move {
            Ok(ChatResponse::new(response.round(), Message::assistant("Never shown."), FinishReason::Stop))
        })
    })
}

/// Hides that the answer began again.
fn hides_restarts() -> impl StreamAdvisor {
    changes(|answer| {
        answer.try_filter(|chunk| future::ready(!matches!(chunk, Chunk::AttemptRestarted { .. })))
    })
}

/// Looks for a word in each piece.
fn replaces_in_pieces() -> impl StreamAdvisor {
    wraps(|answer| {
        answer.edit_with(|chunk: Chunk, out: &mut EditedChunks<'_>| {
            out.push(match chunk {
                Chunk::Delta { block, delta: BlockDelta::Text(text) } => {
                    let text = text.replace("Oslo", "[city]").into();
                    Chunk::Delta { block, delta: BlockDelta::Text(text) }
                }
                chunk => chunk,
            });
        })
    })
}

/// Completes the answer as soon as its last block has closed, and drops the rest.
fn completes_early() -> impl StreamAdvisor {
    changes(|answer| {
        let mut fold = ChunkFold::default();
        answer
            .map_ok(move |chunk| {
                fold.push(&chunk);
                let is_last = matches!(&chunk, Chunk::Usage { .. });
                let response = fold.response(chunk.round(), &FinishReason::Stop);
                match response {
                    Some(response) if is_last => vec![Ok(chunk), Ok(Chunk::Completed(response))],
                    _ => vec![Ok(chunk)],
                }
            })
            .map_ok(stream::iter)
            .try_flatten()
    })
}

/// Completes the answer at its last chunk, while a task reads the inner stream to its end.
fn completes_while_a_task_goes_on() -> impl StreamAdvisor {
    changes(|answer| {
        let mut rest = Some(answer);
        let mut fold = ChunkFold::default();
        stream::poll_fn(move |cx| {
            let Some(answer) = &mut rest else { return std::task::Poll::Ready(None) };
            let item = std::task::ready!(answer.poll_next_unpin(cx));
            if let Some(Ok(chunk)) = &item {
                fold.push(chunk);
                let response = fold.response(chunk.round(), &FinishReason::Stop);
                if let (Chunk::Usage { .. }, Some(response), Some(answer)) =
                    (chunk, response, rest.take_if(|_| matches!(chunk, Chunk::Usage { .. })))
                {
                    tokio::spawn(answer.for_each(|_| future::ready(())));
                    return std::task::Poll::Ready(Some(Ok(Chunk::Completed(response))));
                }
            }
            std::task::Poll::Ready(item)
        })
    })
}

/// Reports its own copy of the response.
fn reports_its_copy() -> impl StreamAdvisor {
    changes(|answer| {
        let mut fold = ChunkFold::default();
        answer.map_ok(move |chunk| {
            fold.push(&chunk);
            let Chunk::Completed(response) = &chunk else { return chunk };
            let own = fold.response(response.round(), &response.finish.reason);
            Chunk::Completed(own.unwrap_or_else(|| response.clone()))
        })
    })
}

/// Ends a failed answer as if it were complete.
fn swallows_errors() -> impl StreamAdvisor {
    changes(|answer| {
        let mut fold = ChunkFold::default();
        let mut round = 1;
        answer.flat_map(move |item| {
            if let Ok(chunk) = &item {
                round = chunk.round();
                fold.push(chunk);
                return stream::iter(vec![item]);
            }
            let mut end: Vec<_> = fold.close_open().into_iter().map(Ok).collect();
            let response = fold.response(round, &FinishReason::Stop);
            let nothing =
                || ChatResponse::new(round, Message::assistant_blocks(Vec::new()), FinishReason::Empty);
            end.push(Ok(Chunk::Completed(response.unwrap_or_else(nothing))));
            stream::iter(end)
        })
    })
}

mod one_that_swallows_errors_and_says_so {
    advisor_conformance::advisor_conformance!(super::swallows_errors(), declares HandlesErrors);
}

/// Replaces each with another error.
fn renames_errors() -> impl StreamAdvisor {
    changes(|answer| {
        answer.map_err(|error| {
            let partial = error.partial().cloned();
            let own = Error::advisor("it failed");
            match partial {
                Some(partial) => own.or_partial(partial),
                None => own,
            }
        })
    })
}

/// Reads the answer in a task.
fn spawns() -> impl StreamAdvisor {
    changes(|mut answer| {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(item) = answer.next().await {
                // It reads on, although nobody listens.
                drop(sender.send(item));
            }
        });
        stream::poll_fn(move |cx| receiver.poll_recv(cx))
    })
}

/// Keeps the inner stream of a dropped answer.
fn leaks() -> impl StreamAdvisor {
    changes(|answer| {
        stream::unfold(Keeps(Some(answer)), |mut kept| async move {
            let item = kept.0.as_mut()?.next().await?;
            Some((item, kept))
        })
    })
}

struct Keeps(Option<ChunkStream>);

impl Drop for Keeps {
    fn drop(&mut self) {
        std::mem::forget(self.0.take());
    }
}

/// Ends answers after a number of chunks, which all its turns share.
fn shares_a_budget() -> impl StreamAdvisor {
    let shown = Arc::new(AtomicUsize::new(0));
    wraps(move |answer| {
        let shown = Arc::clone(&shown);
        answer.end_when(move |_| (shown.fetch_add(1, Ordering::SeqCst) > 20).then_some(FinishReason::Stop))
    })
}

/// Adds a message of the user.
fn nudges() -> impl StreamAdvisor {
    from_fn("wrong", |request: ChatRequest, next: AdvisorChain| async move {
        next.next_stream(request.with_message(Message::user("Hurry."))).await
    })
}

/// Signs each answer, outside a memory of the same phase.
fn signs() -> impl StreamAdvisor {
    from_fn("wrong", |request: ChatRequest, next: AdvisorChain| async move {
        let answer = next.next_stream(request).await?;
        Ok(answer.edit_with(Signs))
    })
    .with_placement(Placement::new(Phase::Round))
}

struct Signs;

impl ChunkEditor for Signs {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        if let Chunk::Closed { block, content } = &chunk
            && content.as_text().is_some()
        {
            let (block, signature) = (*block, Block::text("Yours, the model."));
            out.push(chunk);
            out.add(block, signature);
            return;
        }
        out.push(chunk);
    }
}

/// Takes one answer at a time, and counts a dropped one as running.
fn never_released() -> impl StreamAdvisor {
    let is_busy = Arc::new(AtomicBool::new(false));
    from_fn("wrong", move |request: ChatRequest, next: AdvisorChain| {
        let is_busy = Arc::clone(&is_busy);
        async move {
            if is_busy.swap(true, Ordering::SeqCst) {
                return Err(Error::new(ErrorKind::Advisor, "busy"));
            }
            Ok(next.next_stream(request).await?.on_completed(move |response| async move {
                is_busy.store(false, Ordering::SeqCst);
                Ok(response)
            }))
        }
    })
}

/// Asks twice, and shows the second answer.
fn asks_twice() -> impl StreamAdvisor {
    from_fn("wrong", |request: ChatRequest, next: AdvisorChain| async move {
        next.next_call(request.clone()).await?;
        next.next_stream(request).await
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

/// Refuses requests that have results of tools.
fn refuses_results() -> impl StreamAdvisor {
    from_fn("wrong", |request: ChatRequest, next: AdvisorChain| async move {
        match request.messages.last().and_then(Message::tool_result) {
            Some(_) => Err(Error::advisor("it knows no tools")),
            None => next.next_stream(request).await,
        }
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

/// Starts a task that outlives the answer.
fn starts_a_task() -> impl StreamAdvisor {
    wraps(|answer| {
        tokio::spawn(future::pending::<()>());
        answer
    })
}

/// Looks at chunks.
fn looks() -> impl StreamAdvisor {
    wraps(|answer| {
        let mut texts = 0;
        answer.inspect_chunks(move |chunk| {
            texts += usize::from(chunk.text().is_some());
            assert!(texts < 10_000);
        })
    })
}

mod allocations_of_one_that_looks {
    advisor_conformance::advisor_allocations!(super::looks());
}

/// Keeps a copy of each chunk.
fn copies() -> impl StreamAdvisor {
    wraps(|answer| {
        let mut copies = Vec::new();
        answer.inspect_chunks(move |chunk| copies.push(Box::new(chunk.clone())))
    })
}

mod allocations_of_one_that_copies_and_says_so {
    advisor_conformance::advisor_allocations!(super::copies(), at_most 1);
}

#[test]
#[should_panic(expected = "`wrong` breaks law R4: an advisor allocates nothing for each chunk")]
fn an_allocation_for_each_chunk_is_found() {
    let mut count = |work: &mut dyn FnMut()| allocation_counter::measure(work).count_total;
    clauses::law_r4_chunks_cost_no_allocation(&Subject::new(copies), 0, &mut count);
}

/// Opens the inner stream in a task.
fn opens_in_a_task() -> impl StreamAdvisor {
    from_fn("wrong", |request: ChatRequest, next: AdvisorChain| async move {
        let opening = tokio::spawn(next.next_stream(request));
        opening.await.map_err(Error::advisor)?
    })
}

/// Starts work when the answer is complete, and does not wait for it.
fn completes_in_a_task() -> impl StreamAdvisor {
    wraps(|answer| {
        answer.on_completed(|response| async move {
            tokio::spawn(future::pending::<()>());
            Ok(response)
        })
    })
}

/// Keeps the last piece of text until the next one, also across attempts.
fn keeps_text() -> impl StreamAdvisor {
    wraps(|answer| answer.edit_with(KeepsText::default()))
}

#[derive(Default)]
struct KeepsText(Option<Text>);

impl ChunkEditor for KeepsText {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        let text = |block, text| Chunk::Delta { block, delta: BlockDelta::Text(text) };
        match chunk {
            Chunk::Delta { block, delta: BlockDelta::Text(piece) } => {
                self.0.replace(piece).into_iter().for_each(|kept| out.push(text(block, kept)));
            }
            Chunk::Closed { block, content } => {
                if content.as_text().is_some() {
                    self.0.take().into_iter().for_each(|kept| out.push(text(block, kept)));
                }
                out.push(Chunk::Closed { block, content });
            }
            chunk => out.push(chunk),
        }
    }
}

/// Answers after tools by itself, with the block ids of another round.
fn repeats_block_ids() -> impl StreamAdvisor {
    from_fn("wrong", |request: ChatRequest, next: AdvisorChain| async move {
        match request.messages.last().and_then(Message::tool_result) {
            Some(_) => {
                let answer = Message::assistant("It worked.");
                Ok(ChunkStream::answer(ChatResponse::new(1, answer, FinishReason::Stop)))
            }
            None => next.next_stream(request).await,
        }
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

/// A list that the model extends with a tool, and that instructions show. `of` names the list of a request.
fn shown_list(of: fn(&ChatRequest) -> String) -> impl StreamAdvisor {
    let lists: Arc<Mutex<HashMap<String, Vec<String>>>> = Arc::default();
    from_fn("list", move |request: ChatRequest, next: AdvisorChain| {
        let (lists, name) = (Arc::clone(&lists), of(&request));
        async move {
            let shown = lists.lock().unwrap().entry(name.clone()).or_default().join(", ");
            let schema =
                json!({"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]});
            let definition = ToolDefinition::new("add_item", "Adds an item to the list.", schema);
            let add = FnTool::new(definition, move |arguments: Value| {
                let item = arguments.get("item").and_then(Value::as_str).unwrap().to_owned();
                lists.lock().unwrap().entry(name.clone()).or_default().push(item);
                async { Ok("added") }
            });
            next.next_stream(request.with_system(format!("The list: {shown}.")).with_tool(add)).await
        }
    })
    .with_placement(Placement::new(Phase::Round))
}

fn shared_list() -> impl StreamAdvisor {
    shown_list(|_| String::new())
}

fn list_of_conversation() -> impl StreamAdvisor {
    shown_list(|request| {
        request.conversation.as_ref().map(|key| key.conversation().to_owned()).unwrap_or_default()
    })
}

mod a_list_of_each_conversation {
    advisor_conformance::advisor_conformance!(super::list_of_conversation());
}

/// Shows the last question of anybody, which each request replaces by its own: two turns one after another hide it.
fn shows_the_last_question() -> impl StreamAdvisor {
    let last: Arc<Mutex<String>> = Arc::default();
    from_fn("last", move |request: ChatRequest, next: AdvisorChain| {
        let is_first = request.messages.iter().all(|message| message.role() != Role::Tool);
        let asked = request.last_user().map(Message::text).unwrap_or_default();
        if is_first {
            *last.lock().unwrap() = asked;
        }
        let shown = Message::user(last.lock().unwrap().clone()).ephemeral();
        async move { next.next_stream(request.with_message(shown)).await }
    })
    .with_placement(Placement::new(Phase::Round))
}

/// Edits outside memory, and says that it is inside.
fn signs_outside() -> impl StreamAdvisor {
    from_fn("wrong", |request: ChatRequest, next: AdvisorChain| async move {
        Ok(next.next_stream(request).await?.edit_with(Signs))
    })
}

fn never_ends() -> impl StreamAdvisor {
    changes(|answer| answer.take_while(|item| future::ready(!is_end(item))).chain(stream::pending()))
}

/// Shows the first chunk again and again, without a pause in which a timeout could be noticed.
fn repeats_for_ever() -> impl StreamAdvisor {
    changes(|answer| answer.take(1).map_ok(|chunk| stream::repeat(chunk).map(Ok)).try_flatten())
}

fn wrong<A: StreamAdvisor>(make: fn() -> A) -> Subject {
    Subject::new(make)
}

fn declaring<A: StreamAdvisor>(declaration: Declaration, make: fn() -> A) -> Subject {
    wrong(make).with_declared([declaration])
}

/// Fails unless this clause, by the beginning of its name, finds the fault of an advisor in these words.
#[track_caller]
#[allow(clippy::needless_pass_by_value, reason = "each subject is made for one clause")]
fn finds(clause: &str, subject: Subject, words: &str) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let is_it = |name: &str| name.strip_prefix("law_").is_some_and(|name| name.starts_with(clause));
    let clause = clauses::clauses(&subject).into_iter().find(|(name, _)| is_it(name)).unwrap().1;
    let panic = runtime.block_on(AssertUnwindSafe(clause).catch_unwind()).expect_err(words);
    let found = panic.downcast::<String>().unwrap();
    assert!(found.contains(words), "{found}\n  in place of: {words}");
}

#[test]
fn each_wrong_advisor_is_found() {
    finds("s2", wrong(buffers), "law S2: each chunk comes out unchanged, in the poll");
    finds("s2", wrong(lags), "law S2");
    finds("s2", wrong(yields), "law S2");
    finds("s2", declaring(HoldsBackBytes(5), || holds_back(12)), "held back, 5 are allowed");
    finds("s3_s4_chunks", wrong(forgets), "law S4: nothing of the model's answer is lost");
    finds("s3_s4_chunks", declaring(EditsAnswers, shouts), "law S3 or S4: the chunks");
    finds("s3_s4_chunks", declaring(EditsAnswers, reports_other_words), "law S3 or S4");
    finds("s3_s4_restarted", wrong(hides_restarts), "in an answer after a void attempt");
    finds("s5", declaring(EditsAnswers, replaces_in_pieces), "law S5: any split of the text");
    finds("o1", wrong(completes_early), "law O1: the completion work of inner advisors ends before");
    finds("o1", declaring(EditsAnswers, completes_while_a_task_goes_on), "law O1");
    finds(
        "m1",
        declaring(EditsAnswers, completes_while_a_task_goes_on),
        "law O3: the completion work of a round",
    );
    finds("o1", wrong(reports_its_copy), "law O1: the response that inner completion work returns");
    finds("s1", wrong(swallows_errors), "law S1: an error from inside ends the answer, with its kind");
    finds("o5", wrong(swallows_errors), "law O5: after a failure of inner completion work");
    finds("s1", wrong(renames_errors), "law S1: an error from inside ends the answer, with its kind");
    finds("s1", wrong(shouts), "law S4: the partial answer of an error has the text that was shown");
    finds("k2_dropped", wrong(spawns), "law K2 or R2: after the end of an answer");
    finds("k2_dropped", wrong(leaks), "1 inner streams and 0 spawned tasks are left");
    finds("s7", declaring(EditsAnswers, shares_a_budget), "law S7: a turn gets the same chunks");
    finds("m2", wrong(nudges), "law M2: the model receives the messages of the request");
    finds("m1", wrong(nudges), "law M1: each request has a valid transcript");
    finds("m1", wrong(signs), "law M4: memory inside the tool loop and memory outside it have the same");
    finds("m1", wrong(signs_outside), "law S4: memory has the answer that was shown");
    finds("k2_k4", wrong(never_released), "law K4: the turn after a dropped one works");
    finds("s3_s4_chunks", wrong(never_ends), "law S1: an answer ends");
    finds("s3_s4_chunks", wrong(repeats_for_ever), "law S1: an answer ends");
    finds("k2_k4", wrong(repeats_for_ever), "law S1: an answer ends");
    finds("s2", declaring(HoldsBackBlocks, buffers), "held back, 0 are allowed");
    finds("s3_s4_chunks", wrong(asks_twice), "the model was asked 2 times");
    finds("m1", wrong(refuses_results), "the advisor works beside a memory and a tool loop");
    finds("k2_dropped", wrong(starts_a_task), "0 inner streams and 1 spawned tasks are left");
    finds("k2_k4", wrong(leaks), "an inner stream is left");
    finds("k2_dropped", wrong(opens_in_a_task), "law K2 or R2");
    finds("k2_dropped", wrong(completes_in_a_task), "0 inner streams and 1 spawned tasks are left");
    finds("s3_s4_restarted", declaring(HoldsBackBytes(5), keeps_text), "law S4: nothing of a void attempt");
    finds("m1", declaring(AnswersItself, repeats_block_ids), "law S3 or S4: the chunks");
    finds("m5", wrong(shared_list), "law M5: the requests and answers of a conversation are the same");
    finds("m5", wrong(shows_the_last_question), "law M5");
}

//! What a judge sees, what waits for it, and what becomes of its verdicts.

use std::sync::Arc;

use advisor_core::{
    Block, BlockContent, BlockId, BlockKind, ChatRequest, Chunk, Citation, Delta, DeltaKind, Error,
    ErrorKind, FallbackModel, FinishReason, Media, Opaque, ProviderData, StreamAdvisor, ToolCallDelta, Usage,
};
use advisor_testkit::{Answer, Gate, Journal, ScriptedModel};
use common_advisors::policy::{BlockPolicy, DenialCause, Denials, PendingBlock, ReplaceText, Verdict};
use futures::{FutureExt, StreamExt};
use serde_json::json;

use crate::policy::blocks::common::{
    chain, denying, end_of_call, judged, of_block, opened, read, request, run, run_in,
};

/// A judge that waits at the gate of the tool that is called, if there is one, and records its work.
fn waiting(journal: &Journal, gates: &[(&'static str, Gate)]) -> BlockPolicy {
    let (journal, gates) = (journal.clone(), gates.to_vec());
    BlockPolicy::new(move |pending: PendingBlock| {
        let mut working = Working::begin(&journal, &pending);
        let gate = gates.iter().find(|(of, _)| *of == working.name).map(|(_, gate)| gate.clone());
        async move {
            if let Some(gate) = gate {
                gate.pass().await;
            }
            working.end();
            Ok(Verdict::Allow)
        }
    })
}

/// A judge at work on a call, in a journal.
struct Working {
    journal: Journal,
    name: String,
    has_ended: bool,
}

impl Working {
    fn begin(journal: &Journal, pending: &PendingBlock) -> Self {
        let name = pending.call().unwrap().name.to_string();
        journal.record(format!("judge.begin {name}"));
        Self { journal: journal.clone(), name, has_ended: false }
    }

    fn end(&mut self) {
        self.has_ended = true;
        self.journal.record(format!("judge.end {}", self.name));
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        if !self.has_ended {
            self.journal.record(format!("judge.drop {}", self.name));
        }
    }
}

/// Records each chunk.
fn note(journal: &Journal, chunk: &Chunk) {
    match chunk {
        Chunk::Opened { block, head } => journal.record(format!("chunk {block} + {:?}", head.kind)),
        Chunk::Delta { block, .. } => journal.record(format!("chunk {block} .")),
        Chunk::Closed { block, .. } => journal.record(format!("chunk {block} -")),
        Chunk::Completed(_) => journal.record("completed"),
        _ => {}
    }
}

fn with_every_kind() -> Answer {
    let opaque = Opaque::new("made-up", "search", json!({"q": 1}));
    let media = Media::from_url("image/png", "https://example.org/a.png");
    Answer::new()
        .text("Let me look.")
        .call("c1", "look", "{\"a\":1}")
        .delta(end_of_call(0))
        .reasoning("hm")
        .delta(DeltaKind::Opaque(Box::new(opaque)).into())
        .text("Wait")
        .text(" a moment.")
        .delta(Delta::media(media))
        .delta(DeltaKind::Citation(Box::<Citation>::default()).into())
        .delta(DeltaKind::Refusal("No.".into()).into())
}

/// While a call is judged, all chunks of all other blocks pass; only the call and the end wait.
#[tokio::test]
async fn law_s2_only_judged_calls_wait() {
    let (journal, gate) = (Journal::new(), Gate::new());
    let policy = waiting(&journal, &[("look", gate.clone())]);
    let model = ScriptedModel::new([with_every_kind().usage(1, 2).finish(FinishReason::ToolCalls)]);
    let request = request();
    let turn = Arc::clone(&request.turn);
    let seen = journal.clone();
    let stream = chain(model, [Arc::new(policy) as _]).next_stream(request).await.unwrap();
    let mut stream = stream.inspect(move |chunk| note(&seen, chunk.as_ref().unwrap()));
    let mut early = Vec::new();
    while let Some(Some(chunk)) = stream.next().now_or_never() {
        early.push(chunk.unwrap());
    }
    use BlockKind::{Citation, Media, Opaque, Reasoning, Refusal, Text};
    assert_eq!(opened(&early), [Text, Reasoning, Opaque, Text, Media, Citation, Refusal]);
    journal.assert_count("judge.begin look", 1);
    journal.assert_count("judge.end look", 0);
    journal.assert_count("chunk * -", 7);
    journal.assert_count("completed", 0);
    gate.release();
    while let Some(chunk) = stream.next().await {
        early.push(chunk.unwrap());
    }
    journal
        .assert_order(&["chunk 1.7 -", "judge.end look", "chunk 1.1 + ToolCall", "chunk 1.1 -", "completed"]);
    let all = read(futures::stream::iter(early.into_iter().map(Ok)), &turn).await;
    let expected = [
        "Let me look.", "(look {\"a\":1})", "<hm>", "Opaque", "Wait a moment.", "Media", "Citation",
        "Refusal",
    ];
    assert_eq!(all.blocks(), expected);
}

/// An allowed call is emitted as it came: the same chunks, with the provider's data.
#[tokio::test]
async fn law_s4_allowed_call_is_emitted_unchanged() {
    let answer = || {
        let mut head = ToolCallDelta::start(0, "c1", "look");
        head.provider_data = Some(ProviderData::new("made-up", json!("signature")));
        Answer::new()
            .text("Let me look.")
            .delta(Delta::tool_call(head))
            .delta(Delta::tool_call(ToolCallDelta::arguments(0, "{\"a\": ")))
            .delta(Delta::tool_call(ToolCallDelta::arguments(0, "[1,  2]}")))
            .finish(FinishReason::ToolCalls)
    };
    let plain = run(answer(), Vec::new()).await;
    let passed = run(answer(), vec![Arc::new(denying(&[]))]).await;
    let call = BlockId::new(1, 1);
    assert_eq!(of_block(&passed.chunks, call), of_block(&plain.chunks, call));
    assert_eq!(passed.response().message(), plain.response().message());
    assert_eq!(passed.response().message().blocks()[1].provider_data().len(), 1);
}

#[tokio::test]
async fn law_s3_s4_denied_call_is_a_text() {
    let answer = Answer::new().text("I delete it.").call("c1", "delete", "{}").text("After.");
    let run = run(answer.finish(FinishReason::ToolCalls), vec![Arc::new(denying(&["delete"]))]).await;
    assert_eq!(run.blocks(), ["I delete it.", "[The call of `delete` was denied.]", "After."]);
    assert_eq!(opened(&run.chunks), [BlockKind::Text; 3]);
    assert_eq!(run.response().finish.reason, FinishReason::Stop);
}

#[tokio::test]
async fn law_s6_denials_are_the_same_without_streaming() {
    let answer = || Answer::from_calls([("c1", "a", "{}"), ("c2", "b", "{}"), ("c3", "c", "{}")]);
    for (names, expected) in [
        (&[][..], ["(a {})", "(b {})", "(c {})"]),
        (&["b"], ["(a {})", "[The call of `b` was denied.]", "(c {})"]),
        (&["a", "b", "c"], ["a", "b", "c"]),
    ] {
        let chain = chain(ScriptedModel::new([answer(), answer()]), [Arc::new(denying(names)) as _]);
        let run = run_in(chain.clone()).await;
        let request = request();
        let turn = Arc::clone(&request.turn);
        let called = chain.next_call(request).await.unwrap();
        assert_eq!(called.message(), run.response().message());
        assert_eq!(called.finish, run.response().finish);
        assert_eq!(turn.extensions().get::<Denials>().unwrap_or_default(), run.denials());
        let denied: Vec<_> = run.denials().0.iter().map(|denial| denial.tool.clone().unwrap()).collect();
        assert_eq!(denied, names);
        if names.len() < 3 {
            assert_eq!(run.blocks(), expected);
        } else {
            assert_eq!(run.response().tool_calls().count(), 0);
        }
    }
}

/// An answer from `model-1` that names a person and makes two calls.
fn with_origin() -> Answer {
    Answer::new()
        .delta(Delta::origin(Some("response-1".into()), Some("model-1".into())))
        .text("Mallory asks.")
        .call("c1", "a", "{}")
        .call("c2", "b", "{}")
        .usage(12, 34)
        .finish(FinishReason::ToolCalls)
}

/// A policy that ends the answer in a later poll, when the model has answered.
fn ending_late() -> BlockPolicy {
    BlockPolicy::new(|_| async {
        tokio::task::yield_now().await;
        Ok(Verdict::EndAnswer(FinishReason::Refusal))
    })
}

/// A policy changes the blocks of a response, and never its id, its model and its token counts.
#[tokio::test]
async fn law_s6_policies_keep_id_model_and_usage() {
    let plain = run(with_origin(), Vec::new()).await;
    let two_texts = || Verdict::Replace(vec![Block::text("x"), Block::text("y")]);
    let policies: [(&str, Arc<dyn StreamAdvisor>); 6] = [
        ("all allowed", Arc::new(denying(&[]))),
        ("one denied", Arc::new(denying(&["b"]))),
        ("all denied", Arc::new(denying(&["a", "b"]))),
        ("replaced", Arc::new(judged(move |_| two_texts()))),
        ("ended", Arc::new(ending_late())),
        ("redacted", Arc::new(ReplaceText::new([("Mallory", "[name]")]))),
    ];
    for (name, policy) in policies {
        let chain = chain(ScriptedModel::new([with_origin(), with_origin()]), [policy]);
        let streamed = run_in(chain.clone()).await;
        for response in [streamed.response(), &chain.next_call(request()).await.unwrap()] {
            let is_plain = response.message() == plain.response().message();
            assert_eq!(is_plain, name == "all allowed", "{name}");
            let origin = (response.response_id.as_deref(), response.model.as_deref());
            assert_eq!(origin, (Some("response-1"), Some("model-1")), "{name}");
            assert_eq!(response.usage, Some(Usage::new(12, 34)), "{name}");
        }
    }
    // They are known at the end of the model's answer. An answer that ends earlier has none.
    let early = judged(|_| Verdict::EndAnswer(FinishReason::Refusal));
    let early = run(with_origin(), vec![Arc::new(early)]).await;
    let early = early.response();
    assert_eq!(
        (early.response_id.as_deref(), early.model.as_deref(), early.usage.as_ref()),
        (None, None, None)
    );
}

/// Several calls are judged at a time, and emitted in their order.
#[tokio::test]
async fn law_s4_judged_in_parallel_emitted_in_order() {
    let gates = ["a", "b", "c"].map(|name| (name, Gate::new()));
    let journal = Journal::new();
    let policy = waiting(&journal, &gates);
    let answer = Answer::from_calls([("c1", "a", "{}"), ("c2", "b", "{}"), ("c3", "c", "{}")]);
    let mut stream =
        chain(ScriptedModel::new([answer]), [Arc::new(policy) as _]).next_stream(request()).await.unwrap();
    let mut ready = async |journal: &Journal| {
        while let Some(Some(chunk)) = stream.next().now_or_never() {
            note(journal, &chunk.unwrap());
        }
    };
    ready(&journal).await;
    journal.assert_count("judge.begin *", 3);
    for name in ["c", "b"] {
        gates.iter().find(|(of, _)| *of == name).unwrap().1.release();
        ready(&journal).await;
    }
    journal.assert_count("judge.end *", 2);
    journal.assert_count("chunk *", 0);
    gates[0].1.release();
    ready(&journal).await;
    journal.assert_order(&[
        "judge.end c", "judge.end b", "judge.end a", "chunk 1.0 -", "chunk 1.1 -", "chunk 1.2 -",
    ]);
}

#[tokio::test]
async fn law_r1_judges_at_a_time_are_bounded() {
    let gates = ["a", "b", "c"].map(|name| (name, Gate::new()));
    let journal = Journal::new();
    let policy = BlockPolicy { concurrency: 2, ..waiting(&journal, &gates) };
    let answer = Answer::from_calls([("c1", "a", "{}"), ("c2", "b", "{}"), ("c3", "c", "{}")]);
    let mut stream =
        chain(ScriptedModel::new([answer]), [Arc::new(policy) as _]).next_stream(request()).await.unwrap();
    assert!(stream.next().now_or_never().is_none());
    journal.assert_count("judge.begin *", 2);
    gates.iter().for_each(|(_, gate)| gate.release());
    let calls =
        stream.filter(|chunk| std::future::ready(matches!(chunk, Ok(Chunk::Closed { .. })))).count().await;
    assert_eq!(calls, 3);
    journal.assert_order(&["judge.end a", "judge.begin c", "judge.end c"]);
}

/// A verdict that ends the answer: the judges of later calls and the model are dropped, and no call runs.
#[tokio::test]
async fn law_r2_last_verdict_drops_judges_and_model() {
    let (journal, gate) = (Journal::new(), Gate::new());
    let policy = ending(&journal, &gate);
    let answer = Answer::new()
        .call("c1", "a", "{}")
        .call("c2", "b", "{}")
        .call("c3", "c", "{}")
        .delta(end_of_call(0))
        .delta(end_of_call(1))
        .delta(end_of_call(2))
        .text("Meanwhile.")
        .hang();
    let chain = chain(ScriptedModel::new([answer]).with_journal(&journal), [Arc::new(policy) as _]);
    let request = request();
    let turn = Arc::clone(&request.turn);
    let mut stream = chain.next_stream(request).await.unwrap();
    let mut chunks = Vec::new();
    while let Some(Some(chunk)) = stream.next().now_or_never() {
        chunks.push(chunk);
    }
    journal.assert_count("judge.begin *", 3);
    gate.release();
    let run = read(futures::stream::iter(chunks).chain(stream), &turn).await;
    assert_eq!(run.blocks(), ["(a {})", "Meanwhile."]);
    assert_eq!(run.response().finish.reason, FinishReason::Refusal);
    journal.assert_order(&["judge.end b", "judge.drop c"]);
    journal.assert_count("model.drop r1", 1);
}

/// A policy that allows `a`, ends the answer at `b` once the gate is released, and never decides about others.
fn ending(journal: &Journal, gate: &Gate) -> BlockPolicy {
    let (journal, gate) = (journal.clone(), gate.clone());
    BlockPolicy::new(move |pending: PendingBlock| {
        let gate = gate.clone();
        let mut working = Working::begin(&journal, &pending);
        async move {
            let verdict = match working.name.as_str() {
                "a" => Verdict::Allow,
                "b" => {
                    gate.pass().await;
                    Verdict::EndAnswer(FinishReason::Refusal)
                }
                _ => std::future::pending().await,
            };
            working.end();
            Ok(verdict)
        }
    })
}

#[tokio::test]
async fn finish_reason_follows_the_calls_left() {
    use FinishReason::{ContentFilter, Length, Other, Paused, Refusal, Stop, ToolCalls};
    for (reason, without_calls) in [
        (ToolCalls, Stop),
        (Stop, Stop),
        (Length, Length),
        (Refusal, Refusal),
        (ContentFilter, ContentFilter),
        (Paused, Paused),
        (Other("eos".into()), Other("eos".into())),
    ] {
        let answer = || Answer::new().call("c1", "a", "{}").call("c2", "b", "{}").finish(reason.clone());
        for (names, expected) in [(&["a", "b"][..], &without_calls), (&["a"], &reason), (&[], &reason)] {
            let run = run(answer(), vec![Arc::new(denying(names))]).await;
            assert_eq!(&run.response().finish.reason, expected, "{names:?}");
        }
        let run =
            run(Answer::new().text("Hm.").finish(reason.clone()), vec![Arc::new(denying(&["a"]))]).await;
        assert_eq!(run.response().finish.reason, reason, "without calls it is unchanged");
    }
}

/// A judge sees that a call is cut off. If the answer breaks, it is not called, and nothing of the call is left.
#[tokio::test]
async fn law_t2_judge_sees_that_a_call_is_cut() {
    let only_complete =
        || {
            judged(|pending| {
                if pending.call().unwrap().complete { Verdict::Allow } else { Verdict::deny("It is cut.") }
            })
        };
    let cut = || {
        Answer::new()
            .delta(Delta::tool_call(ToolCallDelta::start(0, "c1", "look")))
            .delta(Delta::tool_call(ToolCallDelta::arguments(0, "{\"a\"")))
    };
    let run_cut = run(cut().finish(FinishReason::Length), vec![Arc::new(only_complete())]).await;
    assert_eq!(run_cut.blocks(), ["[The call of `look` was denied: It is cut.]"]);
    assert_eq!(run_cut.response().finish.reason, FinishReason::Length);
    // An allowed one stays incomplete.
    let allowed = run(cut().finish(FinishReason::Length), vec![Arc::new(denying(&[]))]).await;
    assert_eq!(allowed.blocks(), ["(look {\"a\"…)"]);
    let never = judged(|_| panic!("it is not judged"));
    let broken = run(
        Answer::new().text("Hm.").delta(Delta::tool_call(ToolCallDelta::start(0, "c1", "look"))),
        vec![Arc::new(never)],
    )
    .await;
    let error = broken.outcome.unwrap_err();
    let partial = error.partial().unwrap();
    assert_eq!((error.kind(), partial.text().as_str()), (ErrorKind::Truncated, "Hm."));
    assert_eq!(partial.tool_calls().count(), 0);
}

/// What was held back of a void attempt is void, and so is its denial.
#[tokio::test]
async fn law_s4_void_attempt_leaves_nothing() {
    let (journal, gate) = (Journal::new(), Gate::new());
    let waits = waiting(&journal, &[("look", gate)]);
    let broken = Answer::new()
        .call("c0", "delete", "{}")
        .call("c1", "look", "{}")
        .delta(end_of_call(0))
        .delta(end_of_call(1))
        .error(Error::new(ErrorKind::Connection, "the connection broke"));
    let first = ScriptedModel::new([broken]);
    let second = ScriptedModel::new([Answer::from_text("Never mind.")]);
    let model = FallbackModel::new(first).with_fallback(second).with_restart_after_output();
    let chain = advisor_core::ChatClient::builder(model)
        .advisor(waits)
        .advisor(denying(&["delete"]))
        .build()
        .unwrap()
        .chain()
        .clone();
    let run = run_in(chain).await;
    assert_eq!(run.blocks(), ["Never mind."]);
    assert_eq!(run.denials().0, []);
    journal.assert_count("judge.drop look", 1);
}

#[tokio::test]
async fn denial_text_has_the_reason() {
    for (explanation, expected) in [
        ("Ask first.", "[The call of `delete` was denied: Ask first.]"),
        ("", "[The call of `delete` was denied.]"),
        (" ", "[The call of `delete` was denied.]"),
    ] {
        let policy = judged(move |_| Verdict::deny(explanation));
        let run = run(Answer::from_calls([("c1", "delete", "{}")]), vec![Arc::new(policy)]).await;
        assert_eq!(run.blocks(), [expected]);
        assert_eq!(run.denials().0[0].cause, DenialCause::Verdict { explanation: explanation.into() });
    }
}

/// Each answer has a new state, which is dropped at its end.
#[tokio::test]
async fn law_s7_answers_have_separate_states() {
    let (journal, gate) = (Journal::new(), Gate::new());
    let policy = waiting(&journal, &[("look", gate.clone())]);
    let model = ScriptedModel::from_fn(|prompt| {
        let name = prompt.messages.last().unwrap().text();
        Answer::new().text(name.clone()).call("c1", &name, "{}").finish(FinishReason::ToolCalls)
    });
    let chain = chain(model, [Arc::new(policy) as _]);
    let ask =
        |name: &str| ChatRequest { messages: vec![advisor_core::Message::user(name)].into(), ..request() };
    let (waiting, other) = (ask("look"), ask("work"));
    let turn = Arc::downgrade(&waiting.turn);
    let mut held = chain.next_stream(waiting).await.unwrap();
    while let Some(Some(chunk)) = held.next().now_or_never() {
        chunk.unwrap();
    }
    let other_turn = Arc::clone(&other.turn);
    let other = read(chain.next_stream(other).await.unwrap(), &other_turn).await;
    assert_eq!(other.blocks(), ["work", "(work {})"]);
    gate.release();
    let rest: Vec<_> = held.by_ref().map(|chunk| chunk.unwrap()).collect().await;
    assert!(matches!(rest.last(), Some(Chunk::Completed(response)) if response.tool_calls().count() == 1));
    drop((held, rest));
    assert!(turn.upgrade().is_none(), "nothing of the turn is kept");
}

/// Text, too, can be judged: it is held back until it is complete.
#[tokio::test]
async fn any_kind_of_block_can_be_judged() {
    let policy = judged(|pending| match pending.block.content() {
        BlockContent::Text(text) if text.contains("Wait") => Verdict::deny(""),
        BlockContent::Opaque(_) | BlockContent::Media(_) | BlockContent::Reasoning(_) => Verdict::deny(""),
        _ => Verdict::Allow,
    });
    let kinds = vec![BlockKind::Text, BlockKind::Reasoning, BlockKind::Opaque, BlockKind::Media];
    let policy = BlockPolicy { kinds, ..policy };
    let run = run(with_every_kind().finish(FinishReason::ToolCalls), vec![Arc::new(policy)]).await;
    assert_eq!(
        run.blocks(),
        [
            "Let me look.",
            "(look {\"a\":1})",
            "[A part of the reasoning was denied.]",
            "[A part of the answer was denied.]",
            "[A text was denied.]",
            "[An image or file was denied.]",
            "Citation",
            "Refusal"
        ]
    );
}

#[tokio::test]
async fn calls_of_other_tools_are_not_judged() {
    let answer = Answer::from_calls([("c1", "read", "{}"), ("c2", "delete", "{}")]);
    let policy = BlockPolicy { tools: Some(vec!["delete".into()]), ..judged(|_| Verdict::deny("")) };
    let run = run(answer, vec![Arc::new(policy)]).await;
    assert_eq!(run.blocks(), ["(read {})", "[The call of `delete` was denied.]"]);
}

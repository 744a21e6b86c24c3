//! Tests of every store in a whole chain: the operations of a long turn, with memory inside the loop.
//!
//! A store on a server is skipped unless `ADVISOR_POSTGRES_URL` or `ADVISOR_REDIS_URL` names its server; with
//! `ADVISOR_REQUIRE_SERVERS=1` a missing server is a failure.

use advisor_chain::memory::store::{NewEntry, export, import};
use advisor_testkit::{Around, Asked, StoreAround, Work};
use advisor_tests::prelude::*;
use advisor_tests::stores::all_stores;
use advisor_tests::tools::{definition, tool};

const NOT_RUN: &str = "not run: the conversation went on without it";

/// Counts the operations of a store.
#[derive(Clone, Default)]
struct Counting(Arc<Mutex<Counts>>);

#[derive(Debug, Default, Clone, PartialEq)]
struct Counts {
    loads: usize,
    appends: usize,
    messages: usize,
    largest_batch: usize,
}

#[async_trait]
impl Around for Counting {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        {
            let mut counts = self.0.lock().unwrap();
            counts.loads += usize::from(matches!(asked, Asked::Load));
            if let Asked::Append(Batch { entries, .. }) = asked {
                let is_message = |entry: &&NewEntry| matches!(entry.kind, EntryKind::Message(_));
                counts.appends += 1;
                counts.messages += entries.iter().filter(is_message).count();
                counts.largest_batch = counts.largest_batch.max(entries.len());
            }
        }
        work.await
    }
}

/// Runs a turn of `rounds` rounds with two calls each. Returns the store's counts, and the number of messages
/// of one request that the request before did not have.
async fn turn_of(rounds: usize, store: Arc<dyn ConversationStore>) -> (Counts, usize) {
    let model = ScriptedModel::from_fn(move |prompt| {
        let asked = prompt.messages.iter().filter(|message| message.tool_calls().next().is_some()).count();
        if asked == rounds {
            return Answer::from_text("done");
        }
        let ids = [format!("a{asked}"), format!("b{asked}")];
        Answer::from_calls(ids.iter().map(|id| (id.as_str(), "work", "{}")))
    });
    let counting = Counting::default();
    let limits = ToolLimits {
        rounds: Some(1000),
        calls: Some(10_000),
        calls_per_tool: Some(10_000),
        same_calls: None,
        ..ToolLimits::default()
    };
    let client = ChatClient::builder(model.clone())
        .advisor(ToolCallAdvisor::builder().limits(limits).build().unwrap())
        .advisor(ChatMemoryAdvisor::new(StoreAround::with(store, counting.clone())))
        .tool(tool("work", "worked"))
        .build()
        .unwrap();
    let key = ConversationKey::in_tenant("backends", TurnId::random().as_str()).unwrap();
    let answer = client.prompt().user("go").conversation(key).call().await.unwrap();
    assert_eq!(answer.text(), "done");
    let prompts = model.prompts();
    let mut new = 0;
    for pair in prompts.windows(2) {
        let [before, after] = pair else { continue };
        let known: Vec<&Message> = before.messages.iter().collect();
        let same = after.messages.iter().zip(&known).take_while(|(one, other)| one.is_same(other)).count();
        assert_eq!(same, known.len(), "what was sent before is shared, not copied");
        new += after.messages.len() - same;
    }
    let counts = counting.0.lock().unwrap().clone();
    (counts, new)
}

#[tokio::test]
async fn law_r4_200_rounds_write_only_new_entries_per_store() {
    for (name, store) in all_stores().await {
        for rounds in [10, 200] {
            let (counts, new) = turn_of(rounds, Arc::clone(&store)).await;
            let expected = Counts {
                loads: 1,
                // The input, each answer with its results behind it, the last answer.
                appends: 1 + 2 * rounds + 1,
                messages: 1 + 3 * rounds + 1,
                largest_batch: 2,
            };
            assert_eq!((counts, new), (expected, 3 * rounds), "{name}, {rounds} rounds");
        }
    }
}

/// Returns the tool result as the model reads it in the turn of its run, and in the next turn.
async fn read_of(store: &Arc<dyn ConversationStore>, value: Value) -> [Message; 2] {
    let model = ScriptedModel::from_fn(|prompt| match prompt.messages.len() {
        1 => Answer::from_calls([("c1", "work", "{}")]),
        _ => Answer::from_text("done"),
    });
    let client = ChatClient::builder(model.clone())
        .advisor(ToolCallAdvisor::new())
        .advisor(ChatMemoryAdvisor::new(Arc::clone(store)))
        .tool(tool("work", value))
        .build()
        .unwrap();
    let key = ConversationKey::in_tenant("backends", TurnId::random().as_str()).unwrap();
    client.prompt().user("go").conversation(key.clone()).call().await.unwrap();
    client.prompt().user("and?").conversation(key.clone()).call().await.unwrap();
    store.delete(&key).await.unwrap();
    let prompts = model.prompts();
    let result = |prompt: usize| prompts[prompt].messages[2].clone();
    [result(1), result(2)]
}

/// Names of members that a JSON parser keeps for itself.
#[tokio::test]
async fn odd_names_and_numbers_are_identical_next_turn() {
    let odd = [
        json!({"a": 1, "$serde_json::private::RawValue": "[1]"}),
        json!({"$serde_json::private::RawValue": 1}),
        json!([{"$serde_json::private::Number": "x"}]),
        json!({"": {"": null}, "\u{0}": "\u{0}", "\u{1F980}": -0.0}),
        json!([u64::MAX, i64::MIN, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.1 + 0.2]),
    ];
    for (name, store) in all_stores().await {
        for value in &odd {
            let [then, later] = read_of(&store, value.clone()).await;
            assert_eq!(then, later, "{name}: {value}");
            assert_eq!(then.tool_result().unwrap().text(), value.to_string(), "{name}");
        }
    }
}

/// Returns the client of a separate process with this memory. It runs `look` itself, and leaves approvals to
/// the caller.
fn process_of(memory: ChatMemoryAdvisor, answers: Vec<Answer>) -> ChatClient {
    ChatClient::builder(ScriptedModel::new(answers))
        .advisor(ToolCallAdvisor::new())
        .advisor(memory)
        .tool(tool("look", "seen"))
        .tool(ClientSideTool::new(definition("approve")))
        .build()
        .unwrap()
}

/// Any process identifies client-side calls by the keys of the first process.
#[tokio::test]
async fn law_t5_client_side_calls_have_same_keys_across_processes() {
    for (name, store) in all_stores().await {
        let key = ConversationKey::in_tenant("backends", TurnId::random().as_str()).unwrap();
        let turn = TurnId::random();
        let approvals = || Answer::from_calls([("1", "approve", "{}"), ("2", "approve", "{\"n\": 2}")]);
        let client = process_of(
            ChatMemoryAdvisor::new(Arc::clone(&store)),
            vec![Answer::from_calls([("1", "look", "{}")]), approvals(), Answer::from_text("Thanks.")],
        );
        let asked = client.prompt().user("go").conversation(key.clone()).turn(turn.clone()).call().await;
        let asked = asked.unwrap();
        let given: Vec<_> = (0..)
            .zip(asked.tool_calls())
            .map(|(position, (_, call))| {
                (Some(CallKey::new(turn.clone(), asked.round(), position)), call.clone())
            })
            .collect();
        assert_eq!((given.len(), asked.round()), (2, 2), "{name}");
        let open = async |key: &ConversationKey| {
            let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
            let calls = memory.client_side_calls(key).await.unwrap();
            calls.into_iter().map(|open| (open.key, open.call)).collect::<Vec<_>>()
        };
        assert_eq!(open(&key).await, given, "{name}");
        let lines: String = export(Arc::clone(&store), key.clone()).try_collect().await.unwrap();
        let copy = ConversationKey::in_tenant("backends", TurnId::random().as_str()).unwrap();
        import(&store, lines.as_bytes(), Some(copy.clone())).await.unwrap();
        assert_eq!(open(&copy).await, given, "{name}: imported");
        let results = || {
            let result = |(_, call): &(_, _)| Message::tool(ToolResult::new(call, vec!["yes".into()]));
            given.iter().map(result).collect::<Vec<_>>()
        };
        // Results that are undone leave them open, in the process that has not written that yet, too.
        let undoing = ChatMemoryAdvisor::new(Arc::clone(&store));
        let other = process_of(undoing.clone(), vec![Answer::new().text("No").hang()]);
        let prompt = other.prompt().messages(results()).conversation(copy.clone());
        let mut undone = prompt.on_drop(OnDrop::Rollback).stream();
        while undone.next().await.unwrap().unwrap().text() != Some("No") {}
        assert_eq!(open(&copy).await, [], "{name}: a turn runs");
        drop(undone);
        let calls = undoing.client_side_calls(&copy).await.unwrap();
        assert!(calls.into_iter().map(|open| (open.key, open.call)).eq(given.clone()), "{name}");
        undoing.close_unfinished().await.unwrap();
        assert_eq!(open(&copy).await, given, "{name}: undone");
        // In one conversation the start stands behind a turn that was undone, in the other at the end.
        for key in [&key, &copy] {
            let memories = [0; 2].map(|_| ChatMemoryAdvisor::new(Arc::clone(&store)));
            let start = CallStart::new(given[0].0.clone().unwrap(), given[0].1.id.clone());
            let (one, other) = futures::join!(
                memories[0].record_call_start(key, &start),
                memories[1].record_call_start(key, &start)
            );
            let errors: Vec<_> = [one, other].into_iter().filter_map(Result::err).collect();
            assert_eq!(errors.len(), 1, "{name}: {errors:?}");
            assert_eq!(errors[0].kind(), ErrorKind::CallAlreadyStarted, "{name}");
            let calls = memories[0].client_side_calls(key).await.unwrap();
            assert_eq!(calls.iter().map(|open| open.started).collect::<Vec<_>>(), [true, false], "{name}");
        }
        let told = ChatMemoryAdvisor::new(Arc::clone(&store)).transcript(&copy).await.unwrap();
        let told: Vec<_> =
            told.iter().filter(|message| message.role() == Role::Tool).map(Message::text).collect();
        assert_eq!(told[told.len() - 2..], [VERIFY_BEFORE_RETRYING, NOT_RUN], "{name}");
        client.prompt().messages(results()).conversation(key.clone()).call().await.unwrap();
        assert_eq!(open(&key).await, [], "{name}: they are answered");
        store.delete(&key).await.unwrap();
        store.delete(&copy).await.unwrap();
    }
}

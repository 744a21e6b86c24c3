//! Law T6, from the bytes of a server to the next request and to memory: servers repeat the ids of calls.

use std::collections::HashSet;

use advisor_testkit::ChatTranscript;
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// The longest time of a turn against the replay server.
const LONGEST: Duration = Duration::from_secs(60);

/// One run of a tool.
#[derive(Debug, Clone, PartialEq)]
struct Ran {
    tool: String,
    arguments: Value,
    call_id: String,
    position: u32,
}

/// The result of a turn.
struct Turn {
    run: Run,
    /// The runs of tools, by their place in the answer.
    ran: Vec<Ran>,
    /// The messages of the second request.
    sent: Vec<Value>,
    stored: MessageList,
}

fn recording(name: &str, ran: &Arc<Mutex<Vec<Ran>>>) -> FnTool {
    let (tool, ran) = (name.to_owned(), Arc::clone(ran));
    FnTool::with_invocation(definition(name), move |invocation: ToolInvocation| {
        ran.lock().unwrap().push(Ran {
            tool: tool.clone(),
            arguments: invocation.arguments,
            call_id: invocation.call.id.to_string(),
            position: invocation.key.position,
        });
        let answer = format!("{tool} as {}", invocation.call.id);
        async move { Ok(ToolOutput::from(answer)) }
    })
}

/// A turn whose first answer is this, with memory in this place.
async fn turn(answer: Reply, streamed: bool, memory_in: Phase) -> Turn {
    let done = if streamed {
        Reply::sse(ChatTranscript::new("m").text("Done.").finish("stop").done())
    } else {
        Reply::json(200, json!({"choices": [{"message": {"content": "Done."}, "finish_reason": "stop"}]}))
    };
    let server = ReplayServer::start([answer, done]).await.unwrap();
    let model = OpenAiModel::new("m").with_base_url(format!("{}/v1", server.url())).with_streaming(streamed);
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let ran = Arc::default();
    let client = ChatClient::builder(model)
        .advisor(streaming(ToolCallStreaming::All))
        .advisor_in(memory_in, memory.clone())
        .tool(recording("delete_all", &ran))
        .tool(recording("read", &ran))
        .build()
        .unwrap();
    let stream = client.prompt().user("go").conversation("c").stream();
    let run = tokio::time::timeout(LONGEST, read(stream)).await.expect("the turn ends");
    assert_eq!(run.response().text(), "Done.");
    let request = server.requests()[1].json().unwrap();
    let mut ran = ran.lock().unwrap().clone();
    ran.sort_by_key(|ran| ran.position);
    Turn {
        run,
        ran,
        sent: request["messages"].as_array().unwrap().clone(),
        stored: memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap(),
    }
}

/// An event of some fragments: index, id, name and arguments, each absent if it is null.
fn event(transcript: ChatTranscript, fragments: &[Value]) -> ChatTranscript {
    let calls: Vec<_> = fragments
        .iter()
        .map(|fragment| {
            let function = json!({"name": fragment[2], "arguments": fragment[3]});
            json!({"index": fragment[0], "id": fragment[1], "type": "function", "function": function})
        })
        .collect();
    transcript.delta(json!({ "tool_calls": calls }))
}

fn streamed(events: &[&[Value]]) -> Reply {
    let transcript =
        events.iter().fold(ChatTranscript::new("m"), |transcript, event_| event(transcript, event_));
    Reply::sse(transcript.finish("tool_calls").done())
}

/// The ids of the calls of an answer, in every place where they stand, and of their results.
fn assert_ids_agree(turn: &Turn) -> Vec<String> {
    let first = turn.run.response().transcript.iter().find(|message| message.tool_calls().count() > 0);
    let ids: Vec<_> = first.unwrap().tool_calls().map(|call| call.id.to_string()).collect();
    let distinct: HashSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");

    let stored = |of: fn(&Message) -> Vec<String>| turn.stored.iter().flat_map(of).collect::<Vec<_>>();
    assert_eq!(stored(|message| message.tool_calls().map(|call| call.id.to_string()).collect()), ids);
    assert_eq!(
        stored(|message| message
            .tool_result()
            .map(|result| result.call_id.to_string())
            .into_iter()
            .collect()),
        ids
    );
    assert_valid(&turn.stored);

    let sent_calls =
        turn.sent.iter().flat_map(|message| message["tool_calls"].as_array().into_iter().flatten());
    assert_eq!(sent_calls.map(|call| call["id"].as_str().unwrap()).collect::<Vec<_>>(), ids);
    let sent_results = turn.sent.iter().filter_map(|message| message["tool_call_id"].as_str());
    assert_eq!(sent_results.collect::<Vec<_>>(), ids);

    let mut finished: Vec<_> = turn.run.chunks.iter().filter_map(finished_call).collect();
    finished.sort_by_key(|id| ids.iter().position(|known| known == id));
    assert_eq!(finished, ids);
    assert_eq!(turn.run.chunks.iter().filter_map(opened_call).collect::<Vec<_>>(), ids);
    ids
}

/// The id of the call whose block this chunk opens.
fn opened_call(chunk: &Chunk) -> Option<String> {
    match chunk {
        Chunk::Opened { head, .. } => Some(head.call.as_ref()?.call_id.to_string()),
        _ => None,
    }
}

/// The id of the call of which this chunk says that it has a result.
fn finished_call(chunk: &Chunk) -> Option<String> {
    match chunk {
        Chunk::Tool(event) => event.result().map(|_| event.call_id.to_string()),
        _ => None,
    }
}

#[tokio::test]
async fn law_t6_called_tools_run_with_their_given_arguments() {
    let (all, path) = ("{\"path\":\"a\"}", "{\"path\":\"b\"}");
    let [all_start, all_end] = ["{\"path\"", ":\"a\"}"];
    let [path_start, path_end] = ["{\"path\":", "\"b\"}"];
    let start = |index: u32, name: &str, arguments: &str| json!([index, "x", name, arguments]);
    let more = |index: u32, id: Value, arguments: &str| json!([index, id, null, arguments]);
    let whole: Vec<Value> = [("delete_all", all), ("read", path)]
        .map(|(name, arguments)| json!({"id": "x", "type": "function", "function": {"name": name, "arguments": arguments}}))
        .into();
    let streams: [&[&[Value]]; 5] = [
        &[&[start(0, "delete_all", all)], &[start(1, "read", path)]],
        &[&[start(0, "delete_all", all), start(1, "read", path)]],
        &[
            &[start(0, "delete_all", "")],
            &[more(0, Value::Null, all)],
            &[start(1, "read", "")],
            &[more(1, Value::Null, path_start)],
            &[more(1, Value::Null, path_end)],
        ],
        &[
            &[start(0, "delete_all", all_start)],
            &[start(1, "read", path_start)],
            &[more(0, json!("x"), all_end)],
            &[more(1, json!("x"), path_end)],
        ],
        // Repeated fragments, one piece after the other.
        &[
            &[start(0, "delete_all", all_start)],
            &[start(0, "delete_all", all_end)],
            &[start(1, "read", "")],
            &[start(1, "read", path_start)],
            &[start(1, "read", path_end)],
            &[start(1, "read", "")],
        ],
    ];
    let answers = streams.map(|events| (streamed(events), true)).into_iter();
    let at_once = json!({"choices": [{"message": {"tool_calls": whole}, "finish_reason": "tool_calls"}]});
    for (answer, is_streamed) in answers.chain([(Reply::json(200, at_once), false)]) {
        for memory_in in PLACES {
            let turn = turn(answer.clone(), is_streamed, memory_in).await;
            let ids = assert_ids_agree(&turn);
            assert_eq!(ids[0], "x", "the first call keeps the id that the server gave it");
            let expected = [("delete_all", "a"), ("read", "b")].into_iter().zip(&ids).zip(0..);
            let expected = expected.map(|(((tool, path), call_id), position)| Ran {
                tool: tool.to_owned(),
                arguments: json!({ "path": path }),
                call_id: call_id.clone(),
                position,
            });
            assert_eq!(turn.ran, expected.collect::<Vec<_>>());
        }
    }
}

/// A server sends an id after the call's block has opened, or none.
#[tokio::test]
async fn law_s4_late_id_appears_nowhere() {
    let [start, end] = ["{\"path\":", "\"b\"}"];
    let answer = streamed(&[
        &[json!([0, null, "read", start])],
        &[json!([0, "late", null, end])],
        &[json!([1, "", "delete_all", "{\"path\":\"a\"}"])],
    ]);
    for memory_in in PLACES {
        let turn = turn(answer.clone(), true, memory_in).await;
        let ids = assert_ids_agree(&turn);
        assert_eq!(turn.ran.iter().map(|ran| ran.call_id.clone()).collect::<Vec<_>>(), ids);
        assert!(!ids.contains(&"late".to_owned()), "{ids:?}");
    }
}

/// The sequence of the defect, where the first call has no arguments.
#[tokio::test]
async fn law_t6_empty_call_takes_no_arguments_of_next() {
    let answer =
        streamed(&[&[json!([0, "x", "delete_all", ""])], &[json!([1, "x", "read", "{\"path\":\"b\"}"])]]);
    let turn = turn(answer, true, Phase::Round).await;
    assert_ids_agree(&turn);
    let ran: Vec<_> = turn.ran.iter().map(|ran| (ran.tool.as_str(), ran.arguments.clone())).collect();
    assert_eq!(ran, [("delete_all", json!({})), ("read", json!({"path": "b"}))]);
}

/// If no key identifies the call, neither tool runs, and the model reads an error.
#[tokio::test]
async fn law_t6_calls_that_contradict_each_other_do_not_run() {
    let path = "{\"path\":\"b\"}";
    let streams: [&[&[Value]]; 3] = [
        &[
            &[json!([0, "a", "delete_all", ""])],
            &[json!([1, "b", "read", ""])],
            &[json!([1, "a", null, path])],
        ],
        &[&[json!([0, "x", "delete_all", ""])], &[json!([0, "x", "read", path])]],
        &[
            &[json!([0, "x", "delete_all", ""])],
            &[json!([1, "x", "read", ""])],
            &[json!([null, "x", null, path])],
        ],
    ];
    for events in streams {
        let turn = turn(streamed(events), true, Phase::Round).await;
        assert_eq!(turn.ran, []);
        assert_ids_agree(&turn);
        let results: Vec<_> = turn.stored.iter().filter_map(Message::tool_result).collect();
        assert_eq!(results.len(), 2);
        for result in results {
            assert!(result.is_error && result.text().starts_with("not started: "), "{result:?}");
        }
    }
}

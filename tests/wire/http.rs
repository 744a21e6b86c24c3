//! Whole turns over real HTTP, against the replay server.

use advisor_chain::openai::backoff::Backoff;
use advisor_testkit::ChatTranscript;
use advisor_tests::lines::texts;
use advisor_tests::prelude::*;

fn client(server: &ReplayServer) -> ChatClient {
    let model = OpenAiModel::new("m").with_base_url(format!("{}/v1", server.url()));
    let work = ToolDefinition::new("work", "Works.", json!({"type": "object"}));
    ChatClient::builder(model)
        .advisor(
            ToolCallAdvisor::builder()
                .limits(ToolLimits {
                    rounds: Some(60),
                    calls: Some(200),
                    calls_per_tool: Some(200),
                    same_calls: None,
                    ..ToolLimits::default()
                })
                .build()
                .unwrap(),
        )
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .tool(FnTool::new(work, |_: Value| async { Ok("done") }))
        .build()
        .unwrap()
}

fn rounds(rounds: usize) -> Vec<Reply> {
    let calls = (0..rounds).map(|round| {
        ChatTranscript::new("m")
            .tool_call(0, &format!("call_{round}_a"), "work", &["{}"])
            .tool_call(1, &format!("call_{round}_b"), "work", &["{}"])
            .finish("tool_calls")
    });
    let answer = ChatTranscript::new("m").text("All ").text("done.").finish("stop");
    calls.chain([answer]).map(|transcript| Reply::sse(transcript.done())).collect()
}

/// Runs fifty rounds and gives the number of connections that the server accepted.
async fn fifty_rounds() -> usize {
    let server = ReplayServer::start(rounds(50)).await.unwrap();
    let response = client(&server).prompt().user("go").conversation("c").call().await.unwrap();
    assert_eq!(response.text(), "All done.");
    let counts = server.counts();
    assert_eq!(counts.requests, 51);
    // Each request holds what the one before held, the answer and its two results.
    let lengths: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.json().unwrap()["messages"].as_array().unwrap().len())
        .collect();
    assert!(lengths.windows(2).all(|pair| pair[1] == pair[0] + 3), "{lengths:?}");
    counts.connections
}

#[tokio::test]
async fn a_turn_of_fifty_rounds_makes_one_connection() {
    assert_eq!(fifty_rounds().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_threaded_rounds_use_at_most_two_connections() {
    // The pool gets a connection back a moment after its body has ended; these tools take no time at all.
    assert!(fifty_rounds().await <= 2);
}

/// Law K3 over a connection: text shown before the connection broke is stored, and the next turn works.
#[tokio::test]
async fn answer_cut_at_any_byte_remembers_shown_text() {
    let body = ChatTranscript::new("m").text("Grüße ").text("aus Oslo").finish("stop").done();
    for breaks in [false, true] {
        let replies = (0..body.len()).flat_map(|at| {
            let cut =
                if breaks { Reply::sse(body.clone()).cut_after(at) } else { Reply::sse(body.slice(..at)) };
            [cut, Reply::sse(ChatTranscript::new("m").text("Next.").finish("stop").done())]
        });
        let server = ReplayServer::start(replies).await.unwrap();
        let mut completed = 0;
        for at in 0..body.len() {
            let model = OpenAiModel::new("m").with_base_url(format!("{}/v1", server.url()));
            let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
            let client = ChatClient::builder(model.with_retries(Backoff::none())).advisor(memory.clone());
            let client = client.build().unwrap();
            let mut turn = client.prompt().user("go").conversation("c").stream();
            let (mut shown, mut failed) = (String::new(), None);
            while let Some(chunk) = turn.next().await {
                match chunk {
                    Ok(chunk) => shown.push_str(chunk.text().unwrap_or_default()),
                    Err(error) => failed = Some(error),
                }
            }
            drop(turn);
            let next = client.prompt().user("next").conversation("c").call().await.unwrap();
            assert_eq!(next.text(), "Next.");
            let answer = match failed {
                None => shown.clone(),
                Some(error) => {
                    let kind = if breaks { ErrorKind::Connection } else { ErrorKind::Truncated };
                    assert_eq!((error.kind(), error.emitted()), (kind, !shown.is_empty()), "cut at {at}");
                    let space = if shown.ends_with(' ') { "" } else { " " };
                    format!("{shown}{space}[interrupted]").trim_start().to_owned()
                }
            };
            completed += usize::from(!answer.ends_with(']'));
            let transcript = memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
            assert_eq!(texts(&transcript), ["go", &answer, "next", "Next."], "cut at {at}");
        }
        assert!((1..body.len() / 2).contains(&completed), "{completed} of {} completed", body.len());
    }
}

/// A tool that an advisor adds under a name that servers do not take: it is offered, replayed and called under one.
#[tokio::test]
async fn tool_name_with_dot_works_in_every_round() {
    let call =
        |id: &str| ChatTranscript::new("m").tool_call(0, id, "docs_search", &["{}"]).finish("tool_calls");
    let answer = ChatTranscript::new("m").text("Found.").finish("stop");
    let replies = [call("c1"), call("c2"), answer].map(|transcript| Reply::sse(transcript.done()));
    let server = ReplayServer::start(replies).await.unwrap();
    let search = ToolDefinition::new("docs.search", "Searches.", json!({"type": "object"}));
    let search = Arc::new(FnTool::new(search, |_: Value| async { Ok("a page") }));
    let adds = from_fn("adds", move |mut request: ChatRequest, next: AdvisorChain| {
        request.tools.insert(Arc::<FnTool>::clone(&search));
        async move { next.next_stream(request).await }
    });
    let model = OpenAiModel::new("m").with_base_url(format!("{}/v1", server.url()));
    let client = ChatClient::builder(model)
        .advisor(ToolCallAdvisor::new())
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .advisor(adds)
        .build()
        .unwrap();
    let response = client.prompt().user("go").conversation("c").call().await.unwrap();
    assert_eq!(response.text(), "Found.");
    let results: Vec<_> =
        response.transcript.iter().filter_map(|message| Some(message.tool_result()?.text())).collect();
    assert_eq!(results, ["a page", "a page"]);
    let requests: Vec<Value> = server.requests().iter().map(|request| request.json().unwrap()).collect();
    assert_eq!(requests.len(), 3);
    for request in requests {
        let text = request.to_string();
        assert!(text.contains("docs_search") && !text.contains("docs.search"), "{text}");
    }
}

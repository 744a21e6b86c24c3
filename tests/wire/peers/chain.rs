//! A chain with memory and two tools, and what its caller sees of a turn.

use advisor_chain::messages::MessageContent;
use advisor_tests::prelude::*;

/// A turn that takes longer hangs.
const LONGEST: Duration = Duration::from_secs(60);

pub(crate) const TOOLS: [&str; 2] = ["get_weather", "get_time"];

/// A client, its memory, and the number of tools that ran at the same time.
pub(crate) struct Chain {
    client: ChatClient,
    memory: ChatMemoryAdvisor,
    running: Arc<Running>,
}

#[derive(Debug, Default)]
struct Running {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Everything that a caller sees of one turn.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) fold: ChunkFold,
    /// The calls whose blocks opened.
    pub(crate) opened: Vec<String>,
    /// The results of tools, as they came.
    pub(crate) results: Vec<String>,
    /// The responses of the rounds that called tools.
    pub(crate) rounds: Vec<ChatResponse>,
    pub(crate) response: Option<ChatResponse>,
    pub(crate) error: Option<Error>,
}

impl Chain {
    pub(crate) fn new(model: Arc<dyn ChatModel>, options: ChatOptions, memory_in: Phase) -> Self {
        Self::over(ChatMemoryAdvisor::new(InMemoryStore::new()), model, options, memory_in)
    }

    /// Returns a chain with another model that has the same memory.
    pub(crate) fn continued_by(&self, model: Arc<dyn ChatModel>) -> Self {
        Self::over(self.memory.clone(), model, ChatOptions::default(), Phase::Round)
    }

    fn over(
        memory: ChatMemoryAdvisor,
        model: Arc<dyn ChatModel>,
        options: ChatOptions,
        memory_in: Phase,
    ) -> Self {
        let running = Arc::new(Running::default());
        let builder = ChatClient::builder(model)
            .options(options)
            .advisor(ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap())
            .advisor_in(memory_in, memory.clone());
        let client = TOOLS.into_iter().fold(builder, |builder, name| builder.tool(tool(name, &running)));
        Self { client: client.build().unwrap(), memory, running }
    }

    /// Reads a turn to its end.
    pub(crate) async fn turn(&self, user: &str) -> Seen {
        let mut turn = self.client.prompt().user(user).conversation("c").stream();
        let mut seen = Seen::default();
        let read = async {
            while let Some(chunk) = turn.next().await {
                match chunk {
                    Ok(chunk) => seen.push(chunk),
                    Err(error) => seen.error = Some(error),
                }
            }
        };
        tokio::time::timeout(LONGEST, read).await.expect("the turn hangs");
        seen
    }

    /// Returns the messages of the conversation as they are stored.
    pub(crate) async fn stored(&self) -> Vec<Message> {
        let transcript = self.memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(validate_transcript(&transcript), []);
        transcript.iter().cloned().collect()
    }

    /// Returns the largest number of tools that ran at the same time.
    pub(crate) fn most_running(&self) -> usize {
        self.running.most.load(Ordering::SeqCst)
    }
}

/// A tool that waits once, so that all calls of a round run at the same time if they run in parallel.
fn tool(name: &'static str, running: &Arc<Running>) -> FnTool {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Tokyo"]}},
        "required": ["city"],
    });
    let running = Arc::clone(running);
    FnTool::new(ToolDefinition::new(name, "Tells something of a city.", schema), move |arguments: Value| {
        let running = Arc::clone(&running);
        async move {
            let now = running.now.fetch_add(1, Ordering::SeqCst) + 1;
            running.most.fetch_max(now, Ordering::SeqCst);
            tokio::task::yield_now().await;
            running.now.fetch_sub(1, Ordering::SeqCst);
            Ok(format!("{name} of {}", arguments["city"].as_str().unwrap()))
        }
    })
}

impl Seen {
    fn push(&mut self, chunk: Chunk) {
        self.fold.push(&chunk);
        match chunk {
            Chunk::Opened { head, .. } => self.opened.extend(head.call.map(|call| call.name.to_string())),
            Chunk::Tool(event) => {
                if let ToolEventKind::Finished { result } = &event.kind {
                    assert!(!result.is_error, "{result:?}");
                    self.results.push(result.text());
                }
            }
            Chunk::RoundCompleted(response) => self.rounds.push(response),
            Chunk::Completed(response) => self.response = Some(response),
            _ => {}
        }
    }

    /// Returns the response of a turn that succeeded. The chunks have shown the same text.
    pub(crate) fn response(&self) -> &ChatResponse {
        assert!(self.error.is_none(), "{:?}", self.error);
        let response = self.response.as_ref().unwrap();
        assert_eq!(self.fold.text(response.round()), response.text());
        response
    }
}

/// Writes a stored message as lines, one for each text, call and result.
pub(crate) fn lines(message: &Message) -> Vec<String> {
    match message.content() {
        MessageContent::User(_) => vec![format!("user: {}", message.text())],
        MessageContent::Assistant(_) => {
            let text = Some(message.text()).filter(|text| !text.is_empty());
            let calls = message.tool_calls().map(|call| called(&call.name, &call.arguments));
            text.map(|text| format!("model: {text}")).into_iter().chain(calls).collect()
        }
        MessageContent::Tool(result) => vec![format!("result: {}", result.text())],
        _ => Vec::new(),
    }
}

/// Writes a call as a line.
pub(crate) fn called(name: &str, arguments: &str) -> String {
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    format!("call: {name} of {}", arguments["city"].as_str().unwrap())
}

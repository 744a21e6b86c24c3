//! `Setting`: a client with a tool and memory in either phase. Also answers of the model.

use advisor_tests::lines::short;
use advisor_tests::prelude::*;

/// A client with the tool `look`, which counts its runs, and memory in this phase.
pub(crate) struct Setting {
    pub(crate) client: ChatClientBuilder,
    pub(crate) memory: ChatMemoryAdvisor,
    runs: Arc<Mutex<usize>>,
}

impl Setting {
    pub(crate) fn new(model: &ScriptedModel, remembers: Phase, on_limit: OnLimit) -> Self {
        let (memory, runs) = (ChatMemoryAdvisor::new(InMemoryStore::new()), Arc::<Mutex<usize>>::default());
        let limits = ToolLimits { on_limit, ..ToolLimits::default() };
        let counted = Arc::clone(&runs);
        let look = tool("look", move |_| {
            *counted.lock().unwrap() += 1;
            async { Ok("a result".to_owned()) }
        });
        let client = ChatClient::builder(model.clone())
            .advisor(ToolCallAdvisor::builder().limits(limits).build().unwrap())
            .advisor_in(remembers, memory.clone())
            .tool(look);
        Self { client, memory, runs }
    }

    pub(crate) fn runs(&self) -> usize {
        *self.runs.lock().unwrap()
    }

    /// The stored messages in short, which are a valid transcript.
    pub(crate) async fn remembered(&self) -> Vec<String> {
        let transcript = self.memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(validate_transcript(&transcript), [], "{transcript:?}");
        short(&transcript)
    }
}

/// A tool without arguments.
pub(crate) fn tool<F>(
    name: &'static str,
    run: impl Fn(ToolInvocation) -> F + Send + Sync + 'static,
) -> impl Tool
where
    F: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    FnTool::with_invocation(ToolDefinition::new(name, "A tool.", json!({"type": "object"})), move |call| {
        let running = run(call);
        async move { running.await.map(Into::into) }
    })
}

/// An answer with a call of `look`, of this many tokens.
pub(crate) fn looks(tokens: u64) -> Answer {
    Answer::new().text("Well. ").call("c1", "look", "{}").usage(tokens - 1, 1).finish(FinishReason::ToolCalls)
}

/// An answer with a text, of this many tokens.
pub(crate) fn says(text: &str, tokens: u64) -> Answer {
    Answer::new().text(text).usage(tokens - 1, 1).finish(FinishReason::Stop)
}

pub(crate) fn refused(kind: ErrorKind) -> Answer {
    Answer::refused(Error::new(kind, "refused"))
}

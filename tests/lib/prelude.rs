//! What nearly every test names.

pub use advisor_chain::advisors::ResponseCache;
pub use advisor_chain::anthropic::AnthropicModel;
pub use advisor_chain::chain::{
    AdvisorRole, EditedChunks, LoopHistory, OnDrop, Record, Step, TurnEnd, TurnRecorder,
};
pub use advisor_chain::gemini::GeminiModel;
pub use advisor_chain::memory::store::{Batch, Entry, EntryId, EntryKind, ReadRange, Version};
pub use advisor_chain::memory::{ConversationStore, OnBusy, StoreError, Window};
pub use advisor_chain::messages::{
    Block, BlockContent, BlockDelta, BlockId, BlockKind, ChunkFold, Delta, DeltaKind, Limit, Media,
    MessageList, Part, ToolCall, ToolEventKind, ToolResult,
};
pub use advisor_chain::ollama::OllamaModel;
pub use advisor_chain::openai::OpenAiResponsesModel;
pub use advisor_chain::sqlite::SqliteStore;
pub use advisor_chain::stream_policy::{BlockPolicy, PendingBlock, ReplaceText, Verdict};
pub use advisor_chain::text_tool_calls::{TextFormat, TextToolCalls};
pub use advisor_chain::tools::{
    CallKey, CallStart, ClientSideTool, Effect, LoopHooks, OnLimit, ToolCallStreaming, ToolError,
    ToolInvocation, ToolLimits, ToolOutput, ToolSet, VERIFY_BEFORE_RETRYING,
};
pub use advisor_chain::{
    AdvisorChain, AdvisorInfo, ChatClient, ChatClientBuilder, ChatMemoryAdvisor, ChatModel, ChatOptions,
    ChatRequest, ChatResponse, Chunk, ChunkStream, ConversationKey, Error, ErrorKind, FinishReason, FnTool,
    InMemoryStore, Message, OpenAiModel, Phase, Placement, PromptExt, Result, Role, StreamAdvisor, Tool,
    ToolCallAdvisor, ToolChoice, ToolDefinition, TurnId, TurnStream, async_trait, from_fn,
};
pub use advisor_testkit::validate_transcript;
pub use advisor_testkit::{Answer, Gate, Journal, ReplayServer, Reply, ScriptedModel, StoreFault};
pub use futures::{FutureExt, StreamExt, TryStreamExt};
pub use serde_json::{Value, json};
pub use std::collections::{BTreeMap, BTreeSet};
pub use std::sync::atomic::{AtomicUsize, Ordering};
pub use std::sync::{Arc, Mutex};
pub use std::time::Duration;

pub use crate::matrix::{MODES, PLACES};

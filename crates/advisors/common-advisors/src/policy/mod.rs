//! Policies over the blocks of an answer while it streams: judges, replacement, guards.
//!
//! No policy changes a response by itself: the core keeps response, transcript, errors and memory equal to the emitted
//! chunks.
//!
//! # Redact everything
//!
//! Policies are about answers. A name that must appear nowhere needs four places:
//!
//! ```rust
//! use std::sync::Arc;
//!
//! use advisor_core::{AdvisorChain, Block, BlockContent, ChatClient, ChatRequest, Message, Result, from_fn};
//! use advisor_testkit::{Answer, ScriptedModel};
//! use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
//! use common_advisors::policy::{BlockPolicy, PendingBlock, ReplaceText, Verdict};
//! use tool_call_advisor::{FnTool, ToolCallAdvisor};
//! # use advisor_core::{ConversationKey, ToolDefinition};
//! # use serde_json::{Value, json};
//!
//! fn masked(text: &str) -> String {
//!     text.replace("Mallory", "[name]")
//! }
//!
//! /// Masks the input of the user and the results of tools, outside memory: both are sent and remembered masked.
//! async fn mask_request(request: ChatRequest, next: AdvisorChain) -> Result<advisor_core::ChunkStream> {
//!     next.next_stream(request.map_user_text(masked)).await
//! }
//!
//! /// Masks the arguments of calls. `null`, numbers and the JSON around the texts stay as they are.
//! async fn mask_arguments(pending: PendingBlock) -> Result<Verdict> {
//!     let Some(call) = pending.call() else { return Ok(Verdict::Allow) };
//!     let mut masked_call = call.clone();
//!     masked_call.arguments = masked(&call.arguments);
//!     Ok(Verdict::Replace(vec![Block::new(BlockContent::ToolCall(masked_call))]))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! # let model = ScriptedModel::new([
//! #     Answer::new().text("I ask for Mal").text("lory.").call("c1", "find", r#"{"who": "Mallory"}"#).done(),
//! #     Answer::from_text("Mallory is in."),
//! # ]);
//! # let find = ToolDefinition::new("find", "Finds someone.", json!({"type": "object"}));
//! let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
//! let client = ChatClient::builder(model.clone())
//!     .advisor(from_fn("mask-input", mask_request))
//!     .advisor(ToolCallAdvisor::new())
//!     .advisor(memory.clone())
//!     .advisor(ReplaceText::new([("Mallory", "[name]")])) // text, reasoning, refusals
//!     .advisor(BlockPolicy::new(mask_arguments))
//!     // A tool masks its result itself.
//!     .tool(FnTool::new(find, |arguments: Value| async move { Ok(masked(&format!("{arguments}: Mallory is in"))) }))
//!     .build()?;
//! let response = client.prompt().user("Where is Mallory?").conversation("c1").call().await?;
//! assert_eq!(response.text(), "[name] is in.");
//! for prompt in model.prompts() {
//!     assert!(!format!("{:?}", prompt.messages).contains("Mallory"));
//! }
//! let remembered = memory.transcript(&ConversationKey::new("c1")?).await?;
//! assert!(!format!("{remembered:?}").contains("Mallory"));
//! # Ok(()) }
//! ```
//!
//! - The last `Completed` has the user's words as the caller gave them, in its transcript. Mask them before `.user(…)` if
//!   its reader must not see them.
//! - A word that is cut in two by a block of another kind is not found. Citations, media and opaque blocks need a judge:
//!   [`BlockPolicy::kinds`].
//! - A block that changes loses its provider data, such as the signature of a reasoning.

mod blocks;
mod guard;
mod judge;
mod replace;
mod search;

pub use blocks::{BlockPolicy, Denial, DenialCause, Denials, OnFailure};
pub use guard::{Guard, InputGuard, OutputGuard};
pub use judge::model_judge::ModelJudge;
pub use judge::{Judge, PendingBlock, Verdict};
pub use replace::ReplaceText;
pub use search::words::LetterCase;

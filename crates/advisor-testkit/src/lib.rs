#![doc = include_str!("../README.md")]
//!
//! | to | use |
//! | --- | --- |
//! | answer HTTP requests from a script, byte for byte | [`ReplayServer`], [`Reply`] |
//! | read an answer to its end | [`answer_of`] |
//! | script a model without a network | [`ScriptedModel`], [`Answer`] |
//! | make a peer wait at a point, instead of sleeping | [`Gate`] |
//! | write a streamed Chat Completions answer in code | [`ChatTranscript`] |
//! | the same for OpenAI's Responses, Anthropic's Messages, Gemini and Ollama | [`ResponsesTranscript`], [`MessagesTranscript`], [`GeminiTranscript`], [`OllamaTranscript`] |
//! | record events, and check their order | [`Journal`] |
//! | record the work of an advisor, of a model, or of a whole turn | [`JournalAdvisor`], [`JournalModel`], [`Journal::record_chunk`] |
//! | check that a provider reads all that its API documents | [`documented`] |
//! | embed texts without a network, by their words | [`WordEmbeddings`] |
//! | describe a tool to a model | [`DescribedTool`] |
//! | cut bytes in every way a network may | [`split`] |
//! | replay streams recorded from real providers | [`recordings`] |
//!
//! # Speed
//! The suites try thousands of cases. Unoptimised, they take several times as long. Put these lines into the `Cargo.toml`
//! of your workspace, except for packages that your tests do not use:
//!
//! ```toml
//! [profile.dev.package]
//! advisor-core.opt-level = 1
//! advisor-testkit.opt-level = 1
//! chat-memory-advisor.opt-level = 1
//! conversation-store.opt-level = 1
//! message-aggregator.opt-level = 1
//! tool-call-advisor.opt-level = 1
//! dashmap.opt-level = 1
//! futures-util.opt-level = 1
//! serde_json.opt-level = 1
//! tokio.opt-level = 1
//! ```

#[cfg(feature = "advisor-conformance")]
pub mod advisor_conformance;
mod answer_of;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "crash")]
pub mod crash;
#[cfg(feature = "decoding")]
pub mod decoding;
mod described_tool;
pub mod documented;
mod gate;
mod journal;
pub mod recordings;
pub mod replay;
mod scripted;
#[cfg(any(feature = "advisor-conformance", feature = "crash"))]
mod sent;
pub mod split;
#[cfg(feature = "stores")]
mod stores;
mod transcript;
mod word_embeddings;

pub use answer_of::answer_of;
pub use described_tool::DescribedTool;
pub use gate::Gate;
pub use journal::{Event, Journal, JournalAdvisor, JournalModel, OutOfOrder};
pub use replay::{Framing, ReceivedRequest, ReplayServer, Reply, Step};
pub use scripted::{Answer, ReceivedPrompt, ScriptedModel};
#[cfg(feature = "stores")]
pub use stores::{
    Around, Asked, FaultStore, Faults, JournalSink, JournalStore, StoreAround, StoreFault, Work,
};
pub use transcript::{
    ChatTranscript, GeminiTranscript, MessagesTranscript, OllamaTranscript, ResponsesTranscript,
};
pub use word_embeddings::WordEmbeddings;

//! Scripted models, a replaying loopback server and an order journal for testing advisor chains.
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
//! | record the appends of a store, with the feature `stores` | `JournalStore` |
//! | make a store fail, hang or be slow at an operation, with the feature `stores` | `FaultStore` |
//! | stop a turn at each of its await points, or inject a fault there, with the feature `crash` | `crash` |
//! | check a provider against the laws of streams, with the feature `conformance` | `provider_conformance!` |
//! | check an advisor against the laws of the chain, with the feature `advisor-conformance` | `advisor_conformance!`, `advisor_allocations!` |
//! | check that a provider reads all that its API documents | [`documented`] |
//! | decode bodies of a wire format in pieces, with the feature `decoding` | `decoding` |
//! | embed texts without a network, by their words | [`WordEmbeddings`] |
//! | describe a tool to a model | [`DescribedTool`] |
//! | cut bytes in every way a network may | [`split`] |
//! | replay streams recorded from real providers | [`recordings`] |

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

/// The README's examples are tests, too.
#[cfg(all(doctest, feature = "crash", feature = "advisor-conformance"))]
#[doc = include_str!("../README.md")]
struct Readme;

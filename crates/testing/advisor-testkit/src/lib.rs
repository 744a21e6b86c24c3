//! Scripted models, a replaying loopback server and an order journal for testing advisor chains.
//!
#![doc = include_str!("../README.md")]
//!
//! | to | use |
//! | --- | --- |
//! | answer HTTP requests from a script, byte for byte | [`ReplayServer`], [`Reply`] |
//! | read an answer to its end | [`answer_of`] |
//! | script a model without a network | [`ScriptedModel`], [`Answer`] |
//! | make a peer wait at a point, instead of sleeping | [`Gate`] |
//! | write a streamed Chat Completions answer in code | [`ChatTranscript`] |
//! | record events, and check their order | [`Journal`] |
//! | check that the chunks of a stream are well-formed | [`StreamValidator`] |
//! | find what a provider would refuse in a transcript | [`validate_transcript`] |
//! | embed texts without a network, by their words | [`WordEmbeddings`] |
//! | describe a tool to a model | [`DescribedTool`] |
//! | cut bytes in every way a network may | [`split`] |

mod described_tool;
mod gate;
mod journal;
pub mod replay;
mod scripted;
pub mod split;
#[cfg(feature = "stores")]
mod stores;
mod stream_validator;
mod transcript;
mod transcript_validator;
mod word_embeddings;

pub use described_tool::DescribedTool;
pub use gate::Gate;
pub use journal::Journal;
pub use replay::{Framing, ReceivedRequest, ReplayServer, Reply, Step};
pub use scripted::{Answer, ReceivedPrompt, ScriptedModel, answer_of};
#[cfg(feature = "stores")]
pub use stores::{Around, Asked, FaultStore, Faults, JournalStore, StoreAround, StoreFault, Work};
pub use stream_validator::{StreamValidator, StreamViolation};
pub use transcript::ChatTranscript;
pub use transcript_validator::{TranscriptError, validate_transcript};
pub use word_embeddings::WordEmbeddings;

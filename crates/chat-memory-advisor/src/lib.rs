//! Conversation memory for advisor chains: written round by round, windows as views, repair on load.
//!
#![doc = include_str!("../README.md")]
//!
//! # Words
//! | word | type |
//! | --- | --- |
//! | store: keeps conversations, as logs of entries | [`store`], [`ConversationStore`], [`InMemoryStore`] |
//! | branch: the path from its last entry, the tip, back through parents | [`ForkPoint`] |
//! | lease: the exclusive hold of a turn on a conversation, across processes | [`store::Leases`] |
//! | close: to write the end of a turn that stopped, with its shown text | [`OnDrop`], [`TurnEnd`] |
//! | client-side call: a call that the caller runs, in place of the tool loop | [`ClientSideCall`] |
//! | window: the part of a conversation that is sent | [`Window`], [`TokenCounter`] |
//! | repair: makes a log a valid transcript | [`repair`] |
//!
//! [`OnDrop`]: advisor_core::OnDrop
//! [`TurnEnd`]: advisor_core::TurnEnd
//!
//! # Features
//! | feature | effect | default |
//! | --- | --- | --- |
//! | `tiktoken` | `Tiktoken` counts tokens as OpenAI's models do; adds vocabularies of about 4 MB a model | no |

mod advisor;
mod conversation;
mod settings;
#[cfg(test)]
mod tests;
mod transcript;
mod turn;
mod turn_page;

pub use advisor::ChatMemoryAdvisor;
#[doc(no_inline)]
pub use advisor_core::{ClientSideCall, OUTCOME_UNKNOWN, VERIFY_BEFORE_RETRYING};
pub use conversation::hold::OnBusy;
#[doc(no_inline)]
pub use conversation_store as store;
#[doc(no_inline)]
pub use conversation_store::{ConversationStore, InMemoryStore, StoreError};
pub use settings::MemoryReceipt;
pub use transcript::repair::repair;
pub use transcript::summary::Summarizer;
pub use transcript::texts::INTERRUPTED;
#[cfg(feature = "tiktoken")]
pub use transcript::tokens::Tiktoken;
pub use transcript::tokens::{ApproximateTokens, TokenCounter};
pub use transcript::window::{OnOverflow, Window};
pub use turn::start::ForkPoint;
pub use turn_page::{TurnMessages, TurnPage};

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
//! | repair: makes a log a valid transcript | [`repair`], [`validate_transcript`], [`MemoryTexts`] |
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
mod memory_receipt;
mod on_busy;
mod settings;
#[cfg(test)]
mod test_logs;
mod transcript;
mod turn;

pub use advisor::ChatMemoryAdvisor;
pub use advisor::client_side_calls::client_side_calls;
pub use advisor::turn_page::{TurnMessages, TurnPage};
#[doc(no_inline)]
pub use advisor_core::ClientSideCall;
#[doc(no_inline)]
pub use advisor_core::{OUTCOME_UNKNOWN, VERIFY_BEFORE_RETRYING};
#[doc(no_inline)]
pub use conversation_store as store;
#[doc(no_inline)]
pub use conversation_store::{ConversationStore, InMemoryStore, StoreError};
pub use memory_receipt::MemoryReceipt;
pub use on_busy::OnBusy;
pub use transcript::on_overflow::OnOverflow;
pub use transcript::repair::{repair, repair_with};
pub use transcript::summarizer::Summarizer;
pub use transcript::texts::{
    CONTINUED_WITHOUT_RESULTS, INTERRUPTED, LEFT_OUT, MESSAGE_LEFT_OUT, MESSAGE_REFUSED, MemoryTexts,
    NO_ANSWER, NOT_RUN, NOT_STARTED, RESULT_REFUSED,
};
#[cfg(feature = "tiktoken")]
pub use transcript::tiktoken::Tiktoken;
pub use transcript::token_counter::{ApproximateTokens, TokenCounter};
pub use transcript::validate::{TranscriptError, validate_transcript};
pub use transcript::window::Window;
pub use turn::fork_point::ForkPoint;

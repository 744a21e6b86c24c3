//! Policies over the blocks of a streamed answer.
//!
//! - [`BlockPolicy`] holds back tool calls, or blocks of other kinds, until a [`Judge`] has decided. Then the block is
//!   emitted whole, is replaced, or ends the answer. Everything else streams on. A judge is a closure or a model
//!   ([`ModelJudge`]).
//! - [`ReplaceText`] replaces words, or matches of a pattern, while they stream, also if they arrive in pieces.
//! - [`Guard`] answers in place of the model if the user's input matches, or ends an answer where its text does.
//! - [`ObserveBlocks`] calls a [`BlockObserver`](advisor_core::BlockObserver) for each block.
//! - [`StreamValidator`](advisor_core::StreamValidator), of the core, checks any stream of chunks.
//!
//! A policy is an advisor beside the model, inside memory and the tool loop. A call that it denies never runs, and
//! memory stores the shown text. Only a guard on input is outside both. No policy changes a response by itself: the core
//! keeps response, transcript, errors and memory equal to the emitted chunks.

mod guard;
mod judge;
mod observe;
mod policy;
mod replace;
mod search;

pub use guard::Guard;
pub use guard::input::InputGuard;
pub use guard::output::OutputGuard;
pub use judge::model_judge::ModelJudge;
pub use judge::on_long_block::OnLongBlock;
pub use judge::verdict::Verdict;
pub use judge::{Judge, PendingBlock};
pub use observe::ObserveBlocks;
pub use policy::BlockPolicy;
pub use policy::denial::{Denial, DenialCause, Denials};
pub use policy::settings::{OnDeny, OnFailure};
pub use replace::ReplaceText;
pub use search::pattern::PatternError;
pub use search::words::LetterCase;

/// Runs the code of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

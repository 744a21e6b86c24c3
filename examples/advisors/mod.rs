//! Advisors to copy. Each file can be used alone, and all of them work in one chain, in any order.

mod ask_again;
mod cache;
mod fallback;
mod first_text;
mod guard;
mod logged;
mod once_more;
mod permits;
mod polite;
mod redaction;
mod retrieval;
mod stopping;
mod stopwatch;

pub use ask_again::ask_again;
pub use cache::Cache;
pub use fallback::with_fallback;
pub use first_text::{FirstText, first_text};
pub use guard::guard;
pub use logged::Logged;
pub use once_more::once_more;
pub use permits::Permits;
pub use polite::polite;
pub use redaction::redaction;
pub use retrieval::retrieval;
pub use stopping::stopping;
pub use stopwatch::Stopwatch;

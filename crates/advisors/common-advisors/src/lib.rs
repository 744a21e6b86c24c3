//! Advisors for streamed language-model calls: budgets, retries, a cache, routing, policies, retrieval, typed
//! answers.
//!
#![doc = include_str!("../README.md")]

#[cfg(feature = "budget")]
mod budget;
#[cfg(feature = "budget")]
mod money;
#[cfg(any(feature = "budget", feature = "rate-limit"))]
mod per_tenant;
#[cfg(feature = "policy")]
pub mod policy;
#[cfg(feature = "prompts")]
mod prompts;
#[cfg(feature = "rate-limit")]
mod rate_limit;
#[cfg(feature = "routing")]
mod recent;
#[cfg(feature = "cache")]
mod response_cache;
#[cfg(feature = "retrieval")]
pub mod retrieval;
#[cfg(feature = "retry")]
mod retry;
#[cfg(feature = "routing")]
mod routing;
#[cfg(feature = "structured")]
pub mod structured;
#[cfg(feature = "tools")]
mod tools;

#[cfg(feature = "budget")]
pub use budget::{Budget, Spent};
#[cfg(feature = "budget")]
pub use money::{Money, Price};
#[cfg(feature = "prompts")]
pub use prompts::{PromptTemplate, ReReading, SystemTemplate, TemplateValues};
#[cfg(feature = "rate-limit")]
pub use rate_limit::RateLimit;
#[cfg(feature = "cache")]
pub use response_cache::ResponseCache;
#[cfg(feature = "retry")]
pub use retry::Retry;
#[cfg(feature = "routing")]
pub use routing::{Route, RoutedModel};
#[cfg(feature = "tools")]
pub use tools::{only_tools::OnlyTools, search::ToolSearch};

//! Advisors that most services need.
//!
//! - [`Budget`] limits the tokens and the money of a turn, a tenant or all turns together.
//! - [`Retry`] asks again after an error that can pass.
//! - [`RateLimit`] limits the calls in a time and at once.
//! - [`ResponseCache`] answers an equal request again without the model; by [`SimilarQuestions`] also a similar one.
//! - [`RoutedModel`] chooses one of several models by health, cost, latency and conversation.
//! - [`OnlyTools`] allows some tools only, and [`ToolSearch`] offers a large set by search.
//! - [`SystemTemplate`] adds a system text with values of the turn; [`ReReading`] sends each question twice.
//! - [`PrefixWatch`] warns if the beginning of the prompt changes, which providers cache.
//!
//! None of them looks at chunks, except a routed model that measures latency.

mod budget;
mod per_tenant;
mod prefix_watch;
mod prompts;
mod rate_limit;
mod recent;
mod response_cache;
mod retry;
mod routing;
mod tools;

pub use budget::money::Money;
pub use budget::prices::{Price, Prices};
pub use budget::spent::Spent;
pub use budget::{Budget, OnUnknownCost};
pub use prefix_watch::{PrefixChange, PrefixWatch};
pub use prompts::re_reading::ReReading;
pub use prompts::system_template::{SystemTemplate, TemplateValues};
pub use prompts::template::PromptTemplate;
pub use rate_limit::RateLimit;
pub use response_cache::ResponseCache;
pub use response_cache::similar::in_memory::InMemoryQuestions;
pub use response_cache::similar::question::Question;
pub use response_cache::similar::{SimilarAnswer, SimilarQuestions};
pub use retry::Retry;
pub use routing::route::Route;
pub use routing::{RouteOrder, RoutedModel};
pub use tools::only_tools::OnlyTools;
pub use tools::search::ToolSearch;

/// Runs the code of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

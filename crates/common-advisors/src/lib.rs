#![doc = include_str!("../README.md")]

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

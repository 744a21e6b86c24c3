//! Answers of a language model as typed values.
//!
//! [`PromptExt::entity`] asks for a value of a type. [`Entity`] configures the request, and [`EntityStream`]
//! returns the value while the model writes it. [`StructuredOutput`] is the advisor behind them. It requests the
//! form, validates the last answer of a turn, and asks again, a limited number of times.
//!
//! # Example
//! ```
//! use advisor_core::ChatClient;
//! use advisor_testkit::{Answer, ScriptedModel};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use structured_output::PromptExt;
//!
//! #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
//! struct City {
//!     name: String,
//!     inhabitants: u32,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> advisor_core::Result<()> {
//! // The first answer does not fit, so the model is asked again.
//! let model = ScriptedModel::new([
//!     Answer::from_text("Oslo, of course!"),
//!     Answer::from_text(r#"{"name": "Oslo", "inhabitants": 717710}"#),
//! ]);
//! let client = ChatClient::builder(model).build()?;
//! let city: City = client.prompt().user("What is the capital of Norway?").entity().await?;
//! assert_eq!(city, City { name: "Oslo".into(), inhabitants: 717_710 });
//! # Ok(()) }
//! ```

mod advisor;
mod attempts;
mod entity;
mod entity_stream;
mod format;
mod json_text;
mod misfit;
mod partial_json;
mod strict;
mod value_of;

pub use advisor::StructuredOutput;
pub use entity::{Entity, PromptExt};
pub use entity_stream::{EntityStream, Partial};
pub use format::OutputFormat;
pub use schemars;

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

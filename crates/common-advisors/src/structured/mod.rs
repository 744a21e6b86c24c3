//! Answers as typed values: by schema where the server enforces one, by the prompt otherwise, asked again within a bound.

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

//! Answers as typed values: by schema where the server enforces one, by the prompt otherwise, asked again within a bound.

mod advisor;
mod entity;
mod format;
mod json_text;
mod partial_json;
mod strict;

pub use advisor::StructuredOutput;
pub use entity::{Entity, EntityStream, Partial, PromptExt};
pub use format::OutputFormat;
pub use schemars;

//! Tools made from closures and types, and the tool that the caller runs.

pub(crate) mod caller_tool;
pub(crate) mod fn_tool;
#[cfg(feature = "typed-tools")]
pub(crate) mod typed_tool;

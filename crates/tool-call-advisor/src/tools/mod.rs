//! Tools made from closures and types, and the client-side tool.

pub(crate) mod client_side_tool;
pub(crate) mod fn_tool;
#[cfg(feature = "typed-tools")]
pub(crate) mod returned;
#[cfg(feature = "typed-tools")]
pub(crate) mod typed_tool;

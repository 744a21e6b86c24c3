//! Call ids and tool names in the form that a server accepts (Q69).
//!
//! The transcript keeps the original ids and names. A request maps them when its messages are written: equal ones
//! to equal ones, different ones to different ones, the same in every process. An answer maps the names back.

mod call_ids;
mod letters;
mod offered_names;
mod tool_names;
mod wire_names;

pub use call_ids::{Alphabet, CallIds, IdRule, Length};
pub use offered_names::OfferedNames;
pub use tool_names::{FirstLetter, NameRule, ToolNames};
pub use wire_names::WireNames;

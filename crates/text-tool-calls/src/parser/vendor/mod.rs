pub(super) mod deepseek;
mod list;
pub(super) mod tokens;

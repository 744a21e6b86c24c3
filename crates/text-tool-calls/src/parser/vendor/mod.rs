pub(super) mod deepseek;
pub(super) mod kimi;
mod list;

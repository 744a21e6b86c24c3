//! Advisors that write prompts.

pub(crate) mod re_reading;
pub(crate) mod system_template;
pub(crate) mod template;

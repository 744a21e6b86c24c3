//! Parts that several protocols share.

pub(crate) mod answer_info;
pub(crate) mod approvals;
pub(crate) mod breaks;
pub(crate) mod call_ids;
pub(crate) mod cited_text;
pub(crate) mod ending;
pub(crate) mod json;
pub(crate) mod server_tools;
pub(crate) mod turn;

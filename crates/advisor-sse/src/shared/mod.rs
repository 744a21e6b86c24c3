pub(crate) mod answer_info;
pub(crate) mod approvals;
pub(crate) mod call_ids;
pub(crate) mod ending;
pub(crate) mod json;
pub(crate) mod server_tools;
pub(crate) mod turn;

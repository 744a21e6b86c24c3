pub(crate) mod host;
pub(crate) mod limits;
pub(crate) mod tokens;
pub(crate) mod user;

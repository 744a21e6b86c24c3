//! Routes for those who run the server.

pub(super) mod health;
pub(super) mod metrics;

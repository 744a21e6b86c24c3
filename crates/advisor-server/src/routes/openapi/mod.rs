//! The OpenAPI document of the routes.
//!
//! A route is added together with its description. Attributes of `utoipa` would repeat by hand what a handler
//! answers, since all return `Result<Response, Refusal>`.

mod answer;
mod components;
mod document;
pub(super) mod operation;
pub(super) mod routes;

//! The OpenAPI document of the routes.

mod answer;
mod components;
mod document;
pub(super) mod operation;
pub(super) mod routes;

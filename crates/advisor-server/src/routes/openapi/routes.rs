//! `Routes`: a router whose routes have descriptions.

use axum::Router;
use axum::handler::Handler;
use axum::http::header;
use axum::routing::{MethodRouter, delete, get, post};
use bytes::Bytes;

use super::document::Document;
use super::operation::Operation;
use crate::ChatServer;

/// Routes, each with its description. So none can be missing in the document.
#[derive(Debug, Default)]
pub(in crate::routes) struct Routes {
    router: Router<ChatServer>,
    document: Document,
}

impl Routes {
    pub(in crate::routes) fn get<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, ChatServer>,
        operation: Operation,
    ) -> Self {
        self.add("get", path, get(handler), operation)
    }

    pub(in crate::routes) fn post<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, ChatServer>,
        operation: Operation,
    ) -> Self {
        self.add("post", path, post(handler), operation)
    }

    pub(in crate::routes) fn delete<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, ChatServer>,
        operation: Operation,
    ) -> Self {
        self.add("delete", path, delete(handler), operation)
    }

    fn add(
        mut self,
        method: &'static str,
        path: &'static str,
        route: MethodRouter<ChatServer>,
        operation: Operation,
    ) -> Self {
        self.document.add(method, path, operation);
        Self { router: self.router.route(path, route), document: self.document }
    }

    /// Returns the routes with one more, which answers the document.
    pub(in crate::routes) fn into_router(mut self, path: &'static str) -> Router<ChatServer> {
        let operation = Operation::open("openapi", "This document").with_text("application/json");
        self.document.add("get", path, operation);
        let document = Bytes::from(self.document.finish().to_string());
        let answer = move || async move { ([(header::CONTENT_TYPE, "application/json")], document) };
        self.router.route(path, get(answer))
    }
}

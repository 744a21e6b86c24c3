//! `Link`: a server and its current connection; a lost one is replaced at the next use.

use std::sync::{Arc, Mutex, PoisonError};

use advisor_core::{Result, Text};

use super::attempted::Attempted;
use super::connection::Connection;
use super::server::McpServer;

/// A server and its current connection. A lost connection is replaced at the next use.
pub(super) struct Link {
    pub(super) server: Arc<McpServer>,
    /// The origin of its tools.
    pub(super) origin: Text,
    current: Mutex<Arc<Attempted<Arc<Connection>>>>,
}

impl Link {
    pub(super) fn new(server: McpServer) -> Self {
        Self { origin: server.origin(), server: Arc::new(server), current: Mutex::default() }
    }

    /// Returns the connection. Connects if there is none; all that ask meanwhile get the outcome of one attempt.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>> {
        let current = self.current();
        current.get(Connection::open(Arc::clone(&self.server))).await
    }

    fn current(&self) -> Arc<Attempted<Arc<Connection>>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.made().is_some_and(|connection| connection.is_lost()) {
            *current = Arc::default();
        }
        Arc::clone(&current)
    }

    /// Removes the connection, if there is one.
    pub(super) fn take(&self) -> Option<Arc<Connection>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *current).made().cloned()
    }
}

//! `ConnectionQueue`: a few connections behind a semaphore. It runs closures on blocking threads and closes the
//! connections.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conversation_store::{Result, StoreError};
use rusqlite::Connection;
use scopeguard::guard;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::failure::{Failure, lasting};

/// A small pool of connections that runs blocking work off the async threads. At most one piece of work runs per
/// connection.
///
/// Callers wait for a connection asynchronously, in first-in, first-out order. A dropped caller leaves the queue.
/// Work that has started continues after its future is dropped, and keeps its connection until it ends.
pub(crate) struct ConnectionQueue {
    connections: u32,
    places: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl ConnectionQueue {
    pub(crate) fn new(connections: Vec<Connection>) -> Arc<Self> {
        Arc::new(Self {
            connections: u32::try_from(connections.len()).unwrap_or(u32::MAX),
            places: Arc::new(Semaphore::new(connections.len())),
            idle: Mutex::new(connections),
        })
    }

    /// Runs `work` on a connection. `lost` makes the error if the task failed and the work may or may not have
    /// been done.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        lost: fn(&'static str) -> StoreError,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let runtime = Handle::try_current().map_err(lasting)?;
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(lasting)?;
        let queue = Arc::clone(self);
        let working = runtime.spawn_blocking(move || {
            let connection = queue.idle().pop().ok_or_else(|| lasting("there is no connection left"))?;
            // It returns even if the work panics, before its permit is released.
            let mut borrowed = guard((connection, queue, place), |(connection, queue, _place)| {
                queue.idle().push(connection);
            });
            Ok(work(&mut borrowed.0)?)
        });
        working.await.unwrap_or_else(|_| Err(lost("the work on the file has broken off")))
    }

    /// Closes the connections after all earlier work has finished. Later work is refused.
    pub(crate) async fn close(&self) {
        let (Ok(runtime), Ok(_places)) =
            (Handle::try_current(), self.places.acquire_many(self.connections).await)
        else {
            return;
        };
        self.places.close();
        let connections = std::mem::take(&mut *self.idle());
        // This fails only if the runtime shuts down, which closes the connections, too.
        runtime.spawn_blocking(move || drop(connections)).await.unwrap_or_default();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closing a file may write to it, so it also runs off the async threads.
impl Drop for ConnectionQueue {
    fn drop(&mut self) {
        let idle = self.idle.get_mut().unwrap_or_else(PoisonError::into_inner);
        let connections = std::mem::take(idle);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(move || drop(connections));
        }
    }
}

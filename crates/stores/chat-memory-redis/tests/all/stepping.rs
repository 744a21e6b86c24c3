//! A connection whose commands run one by one, when the test says so.

use std::sync::Arc;

use chat_memory_redis::redis::aio::{ConnectionLike, MultiplexedConnection};
use chat_memory_redis::redis::{Cmd, Pipeline, RedisFuture, Value};
use tokio::sync::Semaphore;

#[derive(Clone)]
pub(crate) struct Stepping {
    inner: MultiplexedConnection,
    allowed: Arc<Semaphore>,
    done: Arc<Semaphore>,
}

impl Stepping {
    pub(crate) fn new(inner: MultiplexedConnection) -> Self {
        Self { inner, allowed: Arc::new(Semaphore::new(0)), done: Arc::new(Semaphore::new(0)) }
    }

    /// Allows this many more commands.
    pub(crate) fn allow(&self, commands: usize) {
        self.allowed.add_permits(commands);
    }

    /// Waits until this many commands have run since the last call.
    pub(crate) async fn finished(&self, commands: usize) {
        self.done.acquire_many(u32::try_from(commands).unwrap()).await.unwrap().forget();
    }

    /// Allows one command and waits until it has run, or until the caller's operation has ended without one.
    pub(crate) async fn step_unless_ended(&self, ended: impl Fn() -> bool) {
        self.allow(1);
        while !ended() {
            if let Ok(done) = self.done.try_acquire() {
                return done.forget();
            }
            tokio::task::yield_now().await;
        }
    }

    /// Allows no more commands, and resets the counts.
    pub(crate) fn reset(&self) {
        self.allowed.forget_permits(usize::MAX);
        self.done.forget_permits(usize::MAX);
    }
}

impl ConnectionLike for Stepping {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            self.allowed.acquire().await.unwrap().forget();
            let answer = self.inner.req_packed_command(command).await;
            self.done.add_permits(1);
            answer
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.inner.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.inner.get_db()
    }
}

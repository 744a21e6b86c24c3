use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use advisor_core::{Batches, ChatModel, ChatRequest, Chunk, ChunkStream, Error, ErrorKind, Result};
use async_trait::async_trait;
use futures::stream::Stream;

use super::pass::{Fault, Pass, WANTED};
use super::points::Alive;
use super::{AwaitPoints, Happened, Place};

/// A model that passes a point when it is asked and before each of its items. Made by [`AwaitPoints::model`].
#[derive(Clone)]
pub struct PointModel {
    points: AwaitPoints,
    inner: Arc<dyn ChatModel>,
    in_batches: bool,
}

impl PointModel {
    pub(super) fn new(points: &AwaitPoints, inner: Arc<dyn ChatModel>) -> Self {
        Self { points: points.clone(), inner, in_batches: false }
    }

    /// The same model, behind one of whose items follow, without points of their own, those that are there at once.
    #[must_use]
    pub fn in_batches(self) -> Self {
        Self { in_batches: true, ..self }
    }
}

#[async_trait]
impl ChatModel for PointModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let alive = self.points.alive();
        self.points.record(Happened::Asked {
            turn: request.turn.id().clone(),
            round: request.round,
            messages: request.messages.clone(),
        });
        if self.points.at(Place::Model).await.is_some() {
            return Err(broken());
        }
        let inner = self.inner.stream(request).await?;
        let items =
            Items { points: self.points.clone(), passing: None, more_follow: false, inner, _alive: alive };
        Ok(if self.in_batches { ChunkStream::from_batches(items) } else { ChunkStream::new(items) })
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}

struct Items {
    points: AwaitPoints,
    /// The point before the next item; nothing if it is passed.
    passing: Option<Option<Pass>>,
    /// An item came, and what was there behind it has not been taken.
    more_follow: bool,
    inner: ChunkStream,
    _alive: Alive,
}

impl Stream for Items {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let passing = this.passing.get_or_insert_with(|| Some(this.points.at(Place::ModelItem)));
        if let Some(pass) = passing {
            let fault = ready!(Pin::new(pass).poll(cx));
            *passing = None;
            match fault {
                None => {}
                Some(Fault::CutOff) => return Poll::Ready(None),
                Some(_) => return Poll::Ready(Some(Err(broken()))),
            }
        }
        let item = ready!(Pin::new(&mut this.inner).poll_next(cx));
        this.passing = None;
        this.more_follow = true;
        Poll::Ready(item)
    }
}

impl Batches<Chunk> for Items {
    fn take_ready(mut self: Pin<&mut Self>, ready: &mut VecDeque<Chunk>) {
        if mem::take(&mut self.more_follow) {
            Pin::new(&mut self.inner).take_ready(ready);
        }
    }
}

fn broken() -> Error {
    Error::new(ErrorKind::Connection, WANTED)
}

impl fmt::Debug for PointModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PointModel").field("points", &self.points).finish_non_exhaustive()
    }
}

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use advisor_core::{ChatModel, ChatRequest, Chunk, ChunkStream, Error, ErrorKind, Result};
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
}

impl PointModel {
    pub(super) fn new(points: &AwaitPoints, inner: Arc<dyn ChatModel>) -> Self {
        Self { points: points.clone(), inner }
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
        Ok(ChunkStream::new(Items { points: self.points.clone(), passing: None, inner, _alive: alive }))
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}

struct Items {
    points: AwaitPoints,
    /// The point before the next item; nothing if it is passed.
    passing: Option<Option<Pass>>,
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
        Poll::Ready(item)
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

//! `PointModel`: a model with await points before the call and before each item.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use advisor_core::{ChatModel, ChatRequest, Chunk, ChunkStream, Error, ErrorKind, Result};
use async_trait::async_trait;
use futures::stream::Stream;

use crate::crash::points::Alive;
use crate::crash::points::pass::{LeafFault, Pass, WANTED};
use crate::crash::{AwaitPoint, AwaitPoints, Event};

/// A model that passes a point when it is asked and before each of its items. Made by [`AwaitPoints::model`].
#[derive(Clone)]
pub struct PointModel {
    points: AwaitPoints,
    inner: Arc<dyn ChatModel>,
}

impl PointModel {
    pub(in crate::crash) fn new(points: &AwaitPoints, inner: Arc<dyn ChatModel>) -> Self {
        Self { points: points.clone(), inner }
    }
}

#[async_trait]
impl ChatModel for PointModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let alive = self.points.alive();
        self.points.record(Event::Asked {
            turn: request.turn.id().clone(),
            round: request.round,
            messages: request.messages.clone(),
            tools: request.tools.clone(),
        });
        let round = request.round;
        let opened = match self.points.at(AwaitPoint::Model).await {
            None => self.inner.stream(request).await,
            Some(_) => Err(broken()),
        };
        let inner = opened.inspect_err(|_| self.points.record(Event::AnswerFailed { round }))?;
        let items = Items { points: self.points.clone(), round, next: NextItem::Due, inner, _alive: alive };
        Ok(ChunkStream::new(items))
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn model_name(&self) -> Option<&str> {
        self.inner.model_name()
    }
}

struct Items {
    points: AwaitPoints,
    round: u32,
    next: NextItem,
    inner: ChunkStream,
    _alive: Alive,
}

/// The next item, as far as its await point.
enum NextItem {
    /// It has not reached the point.
    Due,
    AtPoint(Pass),
    Passed,
}

impl Stream for Items {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let item = ready!(this.poll_item(cx));
        if !matches!(item, Some(Ok(_))) {
            this.points.record(Event::AnswerFailed { round: this.round });
        }
        Poll::Ready(item)
    }
}

impl Items {
    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk>>> {
        if matches!(self.next, NextItem::Due) {
            self.next = NextItem::AtPoint(self.points.at(AwaitPoint::ModelItem));
        }
        if let NextItem::AtPoint(pass) = &mut self.next {
            let fault = ready!(Pin::new(pass).poll(cx));
            self.next = NextItem::Passed;
            match fault {
                None => {}
                Some(LeafFault::CutOff) => return Poll::Ready(None),
                Some(_) => return Poll::Ready(Some(Err(broken()))),
            }
        }
        let item = ready!(Pin::new(&mut self.inner).poll_next(cx));
        self.next = NextItem::Due;
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

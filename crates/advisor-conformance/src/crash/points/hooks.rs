//! `PointHooks`: loop hooks with an await point each.

use std::fmt;
use std::sync::Arc;

use advisor_core::{ChatRequest, ChatResponse, Message, MessageList, Result};
use async_trait::async_trait;
use tool_call_advisor::{CallDecision, LoopHooks, LoopOutcome, ReadyCall};

use crate::crash::{AwaitPoint, AwaitPoints, Event};

/// Hooks of the loop, each of which passes a point first. Made by [`AwaitPoints::hooks`].
#[derive(Clone)]
pub struct PointHooks {
    points: AwaitPoints,
    inner: Arc<dyn LoopHooks>,
}

impl PointHooks {
    pub(in crate::crash) fn new(points: &AwaitPoints, inner: Arc<dyn LoopHooks>) -> Self {
        Self { points: points.clone(), inner }
    }

    async fn pass(&self, name: &'static str) -> Result<()> {
        let _alive = self.points.alive();
        self.points.fallible(AwaitPoint::Hook(name)).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl LoopHooks for PointHooks {
    async fn loop_start(&self, request: ChatRequest) -> Result<ChatRequest> {
        if !request.turn.resolves_tools() {
            self.points.record(Event::LoopStarted);
        }
        self.pass("loop_start").await?;
        self.inner.loop_start(request).await
    }

    async fn before_round(&self, request: ChatRequest, round: u32) -> Result<ChatRequest> {
        if !request.turn.resolves_tools() {
            self.points.record(Event::RoundStarted);
        }
        self.pass("before_round").await?;
        self.inner.before_round(request, round).await
    }

    async fn after_round(&self, response: ChatResponse, round: u32) -> Result<ChatResponse> {
        self.points.record(Event::RoundEnded(response.clone()));
        self.pass("after_round").await?;
        self.inner.after_round(response, round).await
    }

    async fn before_tool(&self, call: &ReadyCall, request: &ChatRequest) -> Result<CallDecision> {
        self.pass("before_tool").await?;
        self.inner.before_tool(call, request).await
    }

    async fn next_messages(&self, next: MessageList, results: &[Message]) -> Result<MessageList> {
        self.pass("next_messages").await?;
        self.inner.next_messages(next, results).await
    }

    fn finalize(&self, outcome: &LoopOutcome) {
        self.points.record(Event::LoopEnded);
        self.inner.finalize(outcome);
    }
}

impl fmt::Debug for PointHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PointHooks").field("points", &self.points).finish_non_exhaustive()
    }
}

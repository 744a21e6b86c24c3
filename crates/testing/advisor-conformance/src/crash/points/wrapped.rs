//! A model, a tool and hooks of the loop with await points.

use std::sync::Arc;

use advisor_core::{
    ChatModel, ChatRequest, ChatResponse, ChunkStream, Error, ErrorKind, Message, MessageList, Result, Tool,
    ToolDefinition, ToolError, ToolInvocation, ToolOutput,
};
use async_trait::async_trait;
use futures::StreamExt;
use futures::stream;
use tool_call_advisor::{CallDecision, LoopHooks, LoopOutcome, ReadyCall};

use crate::crash::points::pass::WANTED;
use crate::crash::{AwaitPoint, AwaitPoints, Event, Fault};

/// A model that passes a point when it is asked and before each of its items.
pub(super) struct PointModel {
    pub(super) points: AwaitPoints,
    pub(super) inner: Arc<dyn ChatModel>,
}

#[async_trait]
impl ChatModel for PointModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let (points, alive) = (self.points.clone(), self.points.alive());
        points.record(Event::Asked {
            turn: request.turn.id().clone(),
            round: request.round,
            messages: request.messages.clone(),
            tools: request.tools.clone(),
        });
        let round = request.round;
        let opened = match points.at(AwaitPoint::Model).await {
            None => self.inner.stream(request).await,
            Some(_) => Err(broken()),
        };
        let inner = opened.inspect_err(|_| points.record(Event::AnswerFailed { round }))?;
        let items = stream::unfold((inner, points, alive), move |(mut inner, points, alive)| async move {
            let item = match points.at(AwaitPoint::ModelItem).await {
                None => inner.next().await,
                Some(Fault::CutOff) => None,
                Some(_) => Some(Err(broken())),
            };
            if !matches!(item, Some(Ok(_))) {
                points.record(Event::AnswerFailed { round });
            }
            item.map(|item| (item, (inner, points, alive)))
        });
        Ok(ChunkStream::new(items))
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn model_name(&self) -> Option<&str> {
        self.inner.model_name()
    }
}

fn broken() -> Error {
    Error::new(ErrorKind::Connection, WANTED)
}

/// A tool that passes a point when it starts and when it has run.
pub(super) struct PointTool<T> {
    pub(super) points: AwaitPoints,
    pub(super) inner: T,
}

impl<T: Tool> PointTool<T> {
    async fn pass(&self, await_point: AwaitPoint) -> Result<(), ToolError> {
        match self.points.at(await_point).await {
            None => Ok(()),
            Some(_) => Err(ToolError::new(WANTED)),
        }
    }
}

#[async_trait]
impl<T: Tool> Tool for PointTool<T> {
    fn definition(&self) -> &ToolDefinition {
        self.inner.definition()
    }

    async fn run(&self, invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let _alive = self.points.alive();
        let key = invocation.key.clone();
        self.points.record(Event::ToolStarted {
            key: key.clone(),
            call_id: invocation.call.id.clone(),
            effect: self.inner.definition().effect,
        });
        self.pass(AwaitPoint::ToolStarted).await?;
        let output = self.inner.run(invocation).await;
        self.points.record(Event::ToolEffect(key));
        self.pass(AwaitPoint::ToolEnding).await?;
        output
    }
}

/// Hooks of the loop that do nothing but pass a point each.
pub(super) struct PointHooks(pub(super) AwaitPoints);

impl PointHooks {
    async fn pass(&self, name: &'static str) -> Result<()> {
        let _alive = self.0.alive();
        self.0.fallible(AwaitPoint::Hook(name)).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl LoopHooks for PointHooks {
    async fn loop_start(&self, request: ChatRequest) -> Result<ChatRequest> {
        if !request.turn.resolves_tools() {
            self.0.record(Event::LoopStarted);
        }
        self.pass("loop_start").await?;
        Ok(request)
    }

    async fn before_round(&self, request: ChatRequest, _round: u32) -> Result<ChatRequest> {
        if !request.turn.resolves_tools() {
            self.0.record(Event::RoundStarted);
        }
        self.pass("before_round").await?;
        Ok(request)
    }

    async fn after_round(&self, response: ChatResponse, _round: u32) -> Result<ChatResponse> {
        self.0.record(Event::RoundEnded(response.clone()));
        self.pass("after_round").await?;
        Ok(response)
    }

    async fn before_tool(&self, _call: &ReadyCall, _request: &ChatRequest) -> Result<CallDecision> {
        self.pass("before_tool").await?;
        Ok(CallDecision::Run)
    }

    async fn next_messages(&self, next: MessageList, _results: &[Message]) -> Result<MessageList> {
        self.pass("next_messages").await?;
        Ok(next)
    }

    fn finalize(&self, _outcome: &LoopOutcome) {
        self.0.record(Event::LoopEnded);
    }
}

//! One call as a turn: its arguments, progress, cancellation and result.

use advisor_core::{ChatResponse, ConversationKey, Error, Result, TurnId, TurnStream};
use futures::StreamExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, ErrorData, JsonObject, ProgressNotificationParam,
    ProgressToken,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::Value;

use super::ChainServer;

/// The arguments of a call.
struct Arguments {
    message: String,
    conversation: ConversationKey,
}

impl ChainServer {
    /// Runs one call as a turn.
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        if params.name != self.tool.name {
            return Err(ErrorData::invalid_params("this server has no such tool", None));
        }
        let arguments = self.arguments(params.arguments.unwrap_or_default())?;
        let Ok(_permit) = self.turns.try_acquire() else {
            return Ok(failed("too many calls are running; try again later"));
        };
        let prompt = self.client.prompt().user(arguments.message).conversation(arguments.conversation);
        let token = context.meta.get_progress_token();
        let answer = answer(prompt.stream(), token, &context.peer);
        // The library drops no future of a cancelled request.
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Ok(failed("cancelled")),
            answer = answer => Ok(result(answer)),
        }
    }

    fn arguments(&self, mut arguments: JsonObject) -> Result<Arguments, ErrorData> {
        let invalid = |text: &'static str| ErrorData::invalid_params(text, None);
        let Some(Value::String(message)) = arguments.remove("message") else {
            return Err(invalid("`message` must be a text"));
        };
        let id = match arguments.remove("conversation") {
            // A chain with memory needs one.
            None | Some(Value::Null) => TurnId::random().to_string(),
            Some(Value::String(id)) => id,
            Some(_) => return Err(invalid("`conversation` must be a text")),
        };
        let conversation = match &self.tenant {
            Some(tenant) => ConversationKey::in_tenant(tenant, &id),
            None => ConversationKey::new(&id),
        };
        let conversation =
            conversation.map_err(|_| invalid("`conversation` is no valid id of a conversation"))?;
        Ok(Arguments { message, conversation })
    }
}

/// Reads a turn to its end. Text becomes progress as it arrives, if the caller gave a token.
async fn answer(
    mut turn: TurnStream,
    token: Option<ProgressToken>,
    peer: &Peer<RoleServer>,
) -> Result<ChatResponse> {
    let (mut reports, mut response) = (0_u32, None);
    while let Some(chunk) = turn.next().await {
        let chunk = chunk?;
        if let (Some(token), Some(text)) = (&token, chunk.text()) {
            reports = reports.saturating_add(1);
            let report = ProgressNotificationParam::new(token.clone(), reports.into()).with_message(text);
            // A client that is gone cancels the call.
            let _ = peer.notify_progress(report).await;
        }
        response = chunk.completed().cloned().or(response);
    }
    response.ok_or_else(|| Error::advisor("a turn ended without its completion"))
}

/// Returns the result for the caller: the final text, or the kind of the error.
fn result(answer: Result<ChatResponse>) -> CallToolResult {
    match answer {
        Ok(answer) if answer.open_calls().next().is_some() => {
            failed("the assistant calls a tool that only a direct caller can run")
        }
        Ok(answer) => CallToolResult::success(vec![ContentBlock::text(answer.text())]),
        Err(error) => {
            let kind = error.kind().as_str();
            tracing::warn!(error = kind, "a turn for an MCP client failed");
            failed(&format!("the assistant failed: {kind}"))
        }
    }
}

fn failed(text: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

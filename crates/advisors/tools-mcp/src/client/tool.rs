//! `McpTool`: one call with progress, timeout and the reasons why it has no result.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{
    Progress, Text, Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput, async_trait,
};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, Extensions, ProgressNotificationParam,
    ServerResult,
};
use rmcp::service::ServiceError;
use serde_json::Value;
use tokio::sync::mpsc;

use super::connection::Request;
use super::link::Link;
use super::server::{McpServer, Settings};
use super::watched::ProgressOf;
use super::{content, failure};

/// The longest time of a call, whatever its progress.
const LONGEST_CALL: Duration = Duration::from_secs(600);

/// Progress reports that wait for their reader.
const WAITING_REPORTS: usize = 16;

/// A tool of a server.
pub(super) struct McpTool {
    pub(super) definition: ToolDefinition,
    /// The server's name of the tool.
    pub(super) name: Text,
    pub(super) link: Arc<Link>,
}

#[async_trait]
impl Tool for McpTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn run(&self, invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let outcome = self.call(invocation.arguments, &invocation.progress).await;
        let server = self.link.server.settings.name.as_str();
        let (tool, is_ok) = (failure::logged(&self.name), outcome.is_ok());
        tracing::debug!(server, tool, is_ok, "an MCP server was called");
        outcome
    }
}

impl McpTool {
    async fn call(&self, arguments: Value, progress: &Progress) -> Result<ToolOutput, ToolError> {
        let server = &self.link.server;
        let connection = self.link.connection().await;
        let connection = connection.map_err(|error| ToolError::new(format!("not started: {error}")))?;
        let failed = |error: ServiceError| {
            connection.note(&error);
            failure::of_call(server, &error)
        };
        let (sender, reports) = mpsc::channel(WAITING_REPORTS);
        let request = connection.send(self.request(arguments, sender)).await.map_err(failed)?;
        let answer = with_progress(request, reports, progress, server);
        let answer = tokio::time::timeout(LONGEST_CALL, answer).await.map_err(|_| {
            let (name, seconds) = (&server.settings.name, LONGEST_CALL.as_secs());
            let text = format!("stopped: the server `{name}` did not end the call within {seconds} s");
            failure::of_unknown_outcome(&text)
        })??;
        match answer.map_err(failed)? {
            ServerResult::CallToolResult(result) => content::tool_output(result, server),
            ServerResult::EmptyResult(_) => Ok(content::empty()),
            ServerResult::CustomResult(result) => {
                let result = content::with_unknown_kinds(result.0).ok_or_else(|| failure::foreign(server))?;
                content::tool_output(result, server)
            }
            ServerResult::InputRequiredResult(_) => {
                let name = &server.settings.name;
                let text = "asks for input of a user or a model, which this client does not give";
                Err(ToolError::new(format!("the server `{name}` {text}")))
            }
            _ => Err(failure::foreign(server)),
        }
    }

    fn request(&self, arguments: Value, progress: mpsc::Sender<ProgressNotificationParam>) -> ClientRequest {
        let mut params = CallToolRequestParams::new(self.name.to_string());
        params.arguments = match arguments {
            Value::Object(arguments) => Some(arguments),
            _ => None,
        };
        let mut request = CallToolRequest::new(params);
        request.extensions = Extensions::new();
        request.extensions.insert(ProgressOf(progress));
        ClientRequest::CallToolRequest(request)
    }
}

/// Waits for the answer and passes progress on. Each report restarts the timeout.
async fn with_progress(
    request: Request,
    mut reports: mpsc::Receiver<ProgressNotificationParam>,
    progress: &Progress,
    server: &McpServer,
) -> Result<Result<ServerResult, ServiceError>, ToolError> {
    let Settings { name, timeout, .. } = &server.settings;
    let mut answer = pin!(request.answer());
    let answer = loop {
        let report = tokio::select! {
            biased;
            answer = &mut answer => break answer,
            Some(report) = reports.recv() => report,
            () = tokio::time::sleep(*timeout) => {
                let seconds = timeout.as_secs_f64();
                let text = format!("stopped: no answer of the server `{name}` within {seconds} s");
                return Err(failure::of_unknown_outcome(&text));
            }
        };
        progress.report(text_of(report)).await;
    };
    pass_rest(reports, progress).await;
    Ok(answer)
}

/// Passes the reports that came before the answer. Later ones are refused: a server that never stops them would
/// prolong the call without end.
async fn pass_rest(mut reports: mpsc::Receiver<ProgressNotificationParam>, progress: &Progress) {
    reports.close();
    while let Ok(report) = reports.try_recv() {
        progress.report(text_of(report)).await;
    }
}

/// Returns the message of a report, or else its numbers.
fn text_of(report: ProgressNotificationParam) -> String {
    match (report.message, report.total) {
        (Some(mut message), _) => {
            message.truncate(message.floor_char_boundary(4 << 10));
            message
        }
        (None, Some(total)) => format!("{} of {total}", report.progress),
        (None, None) => report.progress.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{NumberOrString, ProgressToken};

    use super::*;

    #[tokio::test]
    async fn law_r1_reports_after_the_answer_do_not_prolong_a_call() {
        let report = || ProgressNotificationParam::new(ProgressToken(NumberOrString::Number(1)), 1.0);
        let (sender, reports) = mpsc::channel(WAITING_REPORTS);
        let sent = std::iter::repeat_with(|| sender.try_send(report())).take_while(Result::is_ok).count();
        let (progress, mut read) = Progress::channel(1);
        let rest = async {
            pass_rest(reports, &progress).await;
            drop(progress);
        };
        // The server reports again whenever a report was read, at most a thousand times.
        let reading = async {
            let mut number = 0;
            while read.recv().await.is_some() {
                number += 1;
                let _ = (number < 1_000).then(|| [sender.try_send(report()), sender.try_send(report())]);
            }
            number
        };
        assert_eq!(tokio::join!(rest, reading).1, sent);
    }
}

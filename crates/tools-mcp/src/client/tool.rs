//! `McpTool`: one call with progress, timeout and the reasons why it has no result.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{
    Progress, Text, Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput, async_trait,
};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode, Extensions, ProgressNotificationParam,
    ServerResult,
};
use rmcp::service::ServiceError;
use serde_json::Value;
use tokio::sync::mpsc;

use super::connection::{Connection, Request};
use super::failure::Undelivered;
use super::link::Link;
use super::server::Settings;
use super::watched::ProgressOf;
use super::{content, failure};

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
        let server = self.link.server.settings.name.as_str();
        let outcome = self.call(invocation.arguments, &invocation.progress).await;
        let (tool, is_ok) = (failure::logged(&self.name), outcome.is_ok());
        tracing::debug!(server, tool, is_ok, "an MCP server was called");
        outcome.map_err(|failure| failure.into_error(server))
    }
}

impl McpTool {
    async fn call(&self, arguments: Value, progress: &Progress) -> Result<ToolOutput, Failure> {
        let server = &self.link.server;
        let connection =
            self.link.connection().await.map_err(|error| Failure::NotReached(error.to_string()))?;
        let (sender, reports) = mpsc::channel(WAITING_REPORTS);
        let request = connection.send(self.request(arguments, sender)).await;
        let request = request.map_err(|error| self.failure(&error, &connection))?;
        let Settings { timeout, longest_call, .. } = server.settings;
        let answer = with_progress(request, reports, progress, timeout);
        let answer = tokio::time::timeout(longest_call, answer).await;
        let answer = answer.map_err(|_| Failure::TooLong(longest_call))??;
        match answer.map_err(|error| self.failure(&error, &connection))? {
            ServerResult::CallToolResult(result) => {
                content::tool_output(result, server).map_err(Failure::Tool)
            }
            ServerResult::EmptyResult(_) => Ok(content::empty()),
            ServerResult::CustomResult(result) => {
                let result = content::with_unknown_kinds(result.0).ok_or(Failure::Foreign)?;
                content::tool_output(result, server).map_err(Failure::Tool)
            }
            ServerResult::InputRequiredResult(_) => Err(Failure::AsksForInput),
            _ => Err(Failure::Foreign),
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

    fn failure(&self, error: &ServiceError, connection: &Connection) -> Failure {
        connection.note(error);
        let server = &self.link.server;
        match error {
            ServiceError::McpError(error) => {
                let text = failure::shown(server, &error.message);
                match error.code {
                    ErrorCode::INTERNAL_ERROR => Failure::Failed(text),
                    _ => Failure::Refused(text),
                }
            }
            ServiceError::TransportSend(error) => match failure::of_call(server, error) {
                Undelivered::Refused(reason) => Failure::NotRun(reason),
                Undelivered::Failed(text) => Failure::Failed(text),
                Undelivered::Foreign => Failure::Foreign,
                Undelivered::Gone => Failure::Gone,
            },
            ServiceError::TransportClosed => Failure::Gone,
            ServiceError::Cancelled { .. } => Failure::Cancelled,
            _ => Failure::Foreign,
        }
    }
}

/// Waits for the answer and passes progress on. Each report restarts the timeout.
async fn with_progress(
    request: Request,
    mut reports: mpsc::Receiver<ProgressNotificationParam>,
    progress: &Progress,
    timeout: Duration,
) -> Result<Result<ServerResult, ServiceError>, Failure> {
    let mut answer = pin!(request.answer());
    let answer = loop {
        let report = tokio::select! {
            biased;
            answer = &mut answer => break answer,
            Some(report) = reports.recv() => report,
            () = tokio::time::sleep(timeout) => return Err(Failure::TimedOut(timeout)),
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

/// The reasons why a call has no result.
enum Failure {
    /// There was no connection.
    NotReached(String),
    /// The connection ended during the call.
    Gone,
    /// Neither answer nor progress came in time.
    TimedOut(Duration),
    /// The call took longer than any may, whatever its progress.
    TooLong(Duration),
    /// The tool ran and failed.
    Tool(ToolError),
    /// The server answered with an error of the protocol.
    Refused(String),
    /// The server refused the request before the call ran.
    NotRun(Cow<'static, str>),
    /// The server failed at the call.
    Failed(String),
    /// The server stopped the call by itself.
    Cancelled,
    /// The server wants to ask the user or a model.
    AsksForInput,
    /// The answer is none that the protocol has for calls.
    Foreign,
}

impl Failure {
    fn into_error(self, server: &str) -> ToolError {
        let unknown = "the outcome is unknown";
        ToolError::new(match self {
            Self::Tool(error) => return error,
            Self::NotReached(error) => format!("not started: {error}"),
            Self::Gone => format!("the server `{server}` is gone; {unknown}"),
            Self::TimedOut(timeout) => {
                let seconds = timeout.as_secs_f64();
                format!("stopped: no answer of the server `{server}` within {seconds} s; {unknown}")
            }
            Self::TooLong(longest) => {
                let seconds = longest.as_secs_f64();
                format!("stopped: the server `{server}` did not end the call within {seconds} s; {unknown}")
            }
            Self::Refused(message) => format!("the server `{server}` refused the call: {message}"),
            Self::NotRun(reason) => format!("not started: the server `{server}` {reason}"),
            Self::Failed(message) => {
                format!("the server `{server}` failed at the call: {message}; {unknown}")
            }
            Self::Cancelled => format!("the server `{server}` stopped the call; {unknown}"),
            Self::AsksForInput => {
                format!(
                    "the server `{server}` asks for input of a user or a model, which this client does not give"
                )
            }
            Self::Foreign => {
                format!("the server `{server}` answered in a way that the protocol does not have; {unknown}")
            }
        })
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

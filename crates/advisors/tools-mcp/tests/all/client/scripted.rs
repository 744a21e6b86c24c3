//! An MCP server in this process, whose tools do what their names say.

use std::borrow::Cow;
use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, JsonObject,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ResourceContents,
    ServerCapabilities, ServerConfig, ServerNotification, SubscriptionFilter, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer, RunningService, SubscriptionContext, SubscriptionSink};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::Notify;
use tools_mcp::McpServer;

#[derive(Clone, Default)]
pub(crate) struct Scripted(Arc<Shared>);

#[derive(Default)]
struct Shared {
    tools: Mutex<Vec<Tool>>,
    /// Tools on a page; 0 for all.
    page: AtomicUsize,
    legacy: bool,
    lists: AtomicUsize,
    connections: AtomicUsize,
    running: Mutex<Vec<RunningService<RoleServer, Scripted>>>,
    subscription: Mutex<Option<SubscriptionSink>>,
    hanging: Notify,
    cancelled: Notify,
}

fn object(value: Value) -> JsonObject {
    let Value::Object(object) = value else { panic!("not an object: {value}") };
    object
}

pub(crate) fn tool(name: &str) -> Tool {
    with_schema(name, json!({"type": "object"}))
}

pub(crate) fn with_schema(name: &str, schema: Value) -> Tool {
    Tool::new(name.to_owned(), format!("The tool {name}."), object(schema))
}

impl Scripted {
    pub(crate) fn new<'a>(tools: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of(tools.into_iter().map(tool).collect(), false)
    }

    /// A server of the protocol with `initialize`.
    pub(crate) fn legacy<'a>(tools: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of(tools.into_iter().map(tool).collect(), true)
    }

    pub(crate) fn of(tools: Vec<Tool>, legacy: bool) -> Self {
        Self(Arc::new(Shared { tools: Mutex::new(tools), legacy, ..Shared::default() }))
    }

    pub(crate) fn with_page(self, tools: usize) -> Self {
        self.0.page.store(tools, Ordering::Relaxed);
        self
    }

    /// The server as a client sees it: each connection is a pair of streams in memory.
    pub(crate) fn server(&self) -> McpServer {
        let this = self.clone();
        McpServer::from_stream(move || ready(Ok(this.opened())))
    }

    /// The server for the first connection. Further ones are those of `later`.
    pub(crate) fn once(
        &self,
        later: impl Fn() -> std::io::Result<DuplexStream> + Send + Sync + 'static,
    ) -> McpServer {
        let this = self.clone();
        McpServer::from_stream(move || {
            ready(if this.connections() == 0 { Ok(this.opened()) } else { later() })
        })
    }

    fn opened(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(64 << 10);
        self.0.connections.fetch_add(1, Ordering::Relaxed);
        let this = self.clone();
        tokio::spawn(async move {
            if let Ok(running) = this.clone().serve(far).await {
                this.0.running.lock().unwrap().push(running);
            }
        });
        near
    }

    /// Ends all connections.
    pub(crate) async fn stop(&self) {
        let running = std::mem::take(&mut *self.0.running.lock().unwrap());
        for service in running {
            service.cancel().await.unwrap();
        }
    }

    pub(crate) fn lists(&self) -> usize {
        self.0.lists.load(Ordering::Relaxed)
    }

    pub(crate) fn connections(&self) -> usize {
        self.0.connections.load(Ordering::Relaxed)
    }

    pub(crate) async fn hanging(&self) {
        self.0.hanging.notified().await;
    }

    pub(crate) async fn cancelled(&self) {
        self.0.cancelled.notified().await;
    }

    async fn hang(&self, context: &RequestContext<RoleServer>) -> ErrorData {
        self.0.hanging.notify_one();
        context.ct.cancelled().await;
        self.0.cancelled.notify_one();
        ErrorData::internal_error("cancelled", None)
    }

    /// Adds a tool and announces it before the call is answered.
    async fn grow(&self, context: &RequestContext<RoleServer>) {
        self.0.tools.lock().unwrap().push(tool("grown"));
        if self.0.legacy {
            context.peer.notify_tool_list_changed().await.unwrap();
            return;
        }
        let sink = self.0.subscription.lock().unwrap().clone().expect("the client subscribes");
        sink.send(ServerNotification::ToolListChangedNotification(Default::default())).await.unwrap();
    }

    async fn report(&self, context: &RequestContext<RoleServer>) {
        let token = context.meta.get_progress_token().expect("a call has a token");
        let first = ProgressNotificationParam::new(token.clone(), 1.0).with_total(3.0);
        context.peer.notify_progress(first).await.unwrap();
        let second = ProgressNotificationParam::new(token, 2.0).with_message("nearly there");
        context.peer.notify_progress(second).await.unwrap();
    }
}

impl ServerHandler for Scripted {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        if self.0.legacy {
            return vec![ProtocolVersion::V_2025_06_18].into();
        }
        ProtocolVersion::KNOWN_VERSIONS.into()
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        *self.0.subscription.lock().unwrap() = Some(context.sink().clone());
        context.cancelled().await;
        Ok(())
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.0.lists.fetch_add(1, Ordering::Relaxed);
        let tools = self.0.tools.lock().unwrap().clone();
        if tools.iter().any(|tool| tool.name == "no_list") {
            return Err(self.hang(&context).await);
        }
        let from: usize = params.and_then(|params| params.cursor).map_or(0, |cursor| cursor.parse().unwrap());
        let page = match self.0.page.load(Ordering::Relaxed) {
            0 => tools.len(),
            page => page,
        };
        let mut result =
            ListToolsResult::with_all_items(tools.iter().skip(from).take(page).cloned().collect());
        // A hostile server never ends its list.
        let endless = tools.iter().any(|tool| tool.name == "endless");
        result.next_cursor = (endless || from + page < tools.len()).then(|| (from + page).to_string());
        // A client that keeps the list would not see the next one.
        Ok(result.with_ttl_ms(3_600_000))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(params.arguments.unwrap_or_default());
        let png = "iVBORw0KGgo=";
        let result = match &*params.name {
            "echo" => CallToolResult::success(vec![ContentBlock::text(arguments.to_string())]),
            "fail" => CallToolResult::error(vec![ContentBlock::text("no such file")]),
            "refuse" => return Err(ErrorData::invalid_params("bad key s3cret", None)),
            "refuse_long" => {
                let text = format!("{}s3cret-and-long", "x".repeat((4 << 10) - 4));
                return Err(ErrorData::invalid_params(text, None));
            }
            "structured" => CallToolResult::structured(json!({"degrees": 21})),
            "nothing" => CallToolResult::success(vec![]),
            "media" => CallToolResult::success(vec![
                ContentBlock::image(png, "image/png"),
                ContentBlock::image(png, "text/html\r\n"),
                ContentBlock::image("not base64", "image/png"),
                ContentBlock::resource(ResourceContents::blob(png, "file:///a")),
                ContentBlock::resource(ResourceContents::text("a note", "file:///b")),
            ]),
            "large" => CallToolResult::success(vec![ContentBlock::text("x".repeat((4 << 20) + 1))]),
            "report" => {
                self.report(&context).await;
                CallToolResult::success(vec![ContentBlock::text("reported")])
            }
            "ask" => CallToolResult::success(vec![ContentBlock::text(ask(&context).await)]),
            "grow" => {
                self.grow(&context).await;
                CallToolResult::success(vec![ContentBlock::text("grown")])
            }
            "hang" => return Err(self.hang(&context).await),
            "report_and_hang" => {
                self.report(&context).await;
                return Err(self.hang(&context).await);
            }
            "report_for_ever" => {
                let mut every = tokio::time::interval(std::time::Duration::from_secs(30));
                loop {
                    every.tick().await;
                    self.report(&context).await;
                }
            }
            "die" => {
                self.0.hanging.notify_one();
                return std::future::pending().await;
            }
            other => CallToolResult::success(vec![ContentBlock::text(format!("ran {other}"))]),
        };
        Ok(result.into())
    }
}

/// Asks the client for everything that a server may ask for. Returns the answers.
async fn ask(context: &RequestContext<RoleServer>) -> String {
    let message = json!({"messages": [], "maxTokens": 1});
    let question = json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}});
    let requests = [
        json!({"method": "sampling/createMessage", "params": message}),
        json!({"method": "elicitation/create", "params": question}),
        json!({"method": "roots/list"}),
    ];
    let mut answers = Vec::new();
    for request in requests {
        let answer = context.peer.send_request(serde_json::from_value(request).unwrap()).await;
        answers.push(answer.map_or_else(|error| error.to_string(), |answer| json!(answer).to_string()));
    }
    answers.join("; ")
}

/// A tool that claims to change nothing.
pub(crate) fn read_only(name: &str) -> Tool {
    tool(name).with_annotations(ToolAnnotations::new().read_only(true))
}

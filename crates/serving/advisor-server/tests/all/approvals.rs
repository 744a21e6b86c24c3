//! Decisions of users about calls that wait for an approval.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use advisor_core::{
    AdvisorChain, CallKey, CallStart, ChatClient, ChatClientBuilder, ChatRequest, ConversationKey, Decision,
    Error, ErrorKind, Phase, Placement, StreamAdvisor, ToolDefinition, from_fn,
};
use advisor_server::ChatServer;
use advisor_testkit::{Answer, ScriptedModel};
use axum::http::StatusCode;
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use serde_json::{Value, json};
use tool_call_advisor::{
    ArgumentTest, ClientSideTool, FnTool, PolicyAction, ToolCallAdvisor, ToolPolicy, ToolRule,
};

use crate::protocol_approvals::{resolved, run};
use crate::setting::{Setting, chain, json_of, refused, text, told};
use crate::ui_approvals::{answered, continued};

/// A server whose tool `pay` waits for an approval and counts its runs. Its policy denies 13 cents, and a guard outside
/// memory answers messages that begin with `Forbidden`.
pub(crate) struct Till {
    pub(crate) setting: Setting,
    client: ChatClient,
    memory: ChatMemoryAdvisor,
    pub(crate) paid: Arc<AtomicUsize>,
}

pub(crate) fn definition(name: &str) -> ToolDefinition {
    let cents = json!({"type": "object", "properties": {"cents": {"type": "integer"}}});
    ToolDefinition::new(name, "A tool.", cents)
}

/// A server whose users decide about this tool `pay`.
pub(crate) fn paying(
    answers: impl IntoIterator<Item = Answer>,
    pay: FnTool,
    add: impl FnOnce(ChatClientBuilder) -> ChatClientBuilder,
) -> Setting {
    let policy =
        ToolPolicy { rules: vec![ToolRule::new(["pay"], PolicyAction::Ask)], ..ToolPolicy::default() };
    let tool_loop = ToolCallAdvisor::builder().policy(policy).build().unwrap();
    chain(answers, |client| add(client.advisor(tool_loop).tool(pay))).with(ChatServer::with_approvals)
}

pub(crate) fn till(answers: impl IntoIterator<Item = Answer>) -> Till {
    let (model, paid) = (ScriptedModel::new(answers), Arc::new(AtomicUsize::new(0)));
    let runs = Arc::clone(&paid);
    let pay = FnTool::new(definition("pay"), move |arguments: Value| {
        runs.fetch_add(1, Ordering::SeqCst);
        async move { Ok(format!("paid {}", arguments["cents"])) }
    });
    let unlucky = ArgumentTest::Equals { pointer: "/cents".into(), value: json!(13) };
    let denied =
        ToolRule { when: vec![unlucky], ..ToolRule::new(["pay"], PolicyAction::Deny("bad luck".into())) };
    let policy = ToolPolicy {
        rules: vec![denied, ToolRule::new(["pay"], PolicyAction::Ask)],
        ..ToolPolicy::default()
    };
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = ChatClient::builder(model.clone())
        .advisor(guard())
        .advisor(memory.clone())
        .advisor(ToolCallAdvisor::builder().policy(policy).build().unwrap())
        .tool(pay)
        .tool(FnTool::new(definition("look"), |_: Value| async { Ok("clear") }))
        .tool(ClientSideTool::new(definition("place")))
        .build()
        .unwrap();
    let server = ChatServer::new(client.clone(), memory.clone());
    Till { setting: Setting { server, model }, client, memory, paid }
}

fn guard() -> impl StreamAdvisor {
    let guard = from_fn("guard", |request: ChatRequest, next: AdvisorChain| async move {
        let said = request.messages.iter().last().map(|message| message.text()).unwrap_or_default();
        match said.starts_with("Forbidden") {
            true => Ok(request.answer("No.")),
            false => next.next_stream(request).await,
        }
    });
    guard.with_placement(Placement::new(Phase::Turn))
}

/// The same, whose users decide.
pub(crate) fn open_till(answers: impl IntoIterator<Item = Answer>) -> Till {
    till(answers).restarted()
}

impl Till {
    /// Returns a new server over the same conversations, whose users decide.
    pub(crate) fn restarted(&self) -> Self {
        let server = ChatServer::new(self.client.clone(), self.memory.clone()).with_approvals();
        let setting = Setting { server, model: self.setting.model.clone() };
        let (client, memory) = (self.client.clone(), self.memory.clone());
        Self { setting, client, memory, paid: Arc::clone(&self.paid) }
    }
}

/// Records the start of a waiting call, as a process does that dies afterwards.
pub(crate) async fn start(till: &Till) {
    let key = ConversationKey::new("c1").unwrap();
    let open = till.memory.client_side_calls(&key).await.unwrap();
    let next = open.into_iter().find(|open| !open.started).unwrap();
    let start = CallStart::new(next.key.unwrap(), next.call.id);
    till.memory.record_call_start(&key, &start).await.unwrap();
}

pub(crate) fn pays() -> Answer {
    Answer::from_calls([("c1", "pay", r#"{"cents":1}"#), ("c2", "pay", r#"{"cents":2}"#)])
}

pub(crate) async fn asked(till: &Till) -> Vec<Value> {
    let body = json!({"message": "Pay.", "conversation": "c1"});
    text(till.setting.post("/api/chat", &body).await).await;
    waiting(till).await
}

async fn waiting(till: &Till) -> Vec<Value> {
    till.setting.read().await["waiting"].as_array().unwrap().clone()
}

/// Returns the decision about a call as it was shown.
pub(crate) fn decision(call: &Value, verdict: &Value) -> Value {
    json!({"key": call["key"], "tool": call["tool"], "arguments": call["arguments"], "verdict": verdict})
}

pub(crate) fn results(till: &Till) -> Vec<String> {
    let sent = till.setting.model.prompts().pop().unwrap().messages;
    sent.iter().filter_map(|message| Some(message.tool_result()?.text())).collect()
}

#[tokio::test]
async fn users_decide_about_waiting_calls() {
    for path in ["/api/chat", "/api/chunks"] {
        let till = open_till([pays(), Answer::from_text("Done.")]);
        let waiting = asked(&till).await;
        assert_eq!(waiting[0]["tool"], "pay");
        assert_eq!(waiting[1]["arguments"], r#"{"cents":2}"#);
        assert_eq!(waiting[0]["started"], false);
        let decisions = [
            decision(&waiting[0], &json!({"approved_with": {"cents": 7}})),
            decision(&waiting[1], &json!({"denied": "too much"})),
        ];
        let body = json!({"conversation": "c1", "turn": "d1", "decisions": decisions});
        // The same request is the same turn.
        for _ in 0..2 {
            let answer = text(till.setting.post(path, &body).await).await;
            assert!(answer.contains("Done."), "{answer}");
        }
        assert_eq!((till.paid.load(Ordering::SeqCst), till.setting.model.prompts().len()), (1, 2));
        let ran = "The call ran with changed arguments: {\"cents\":7}\npaid 7";
        assert_eq!(results(&till), [ran, "not started: too much"]);
        assert_eq!(self::waiting(&till).await, Vec::<Value>::new());
        let other = json!({"conversation": "c1", "turn": "d1", "decisions": [
            decision(&waiting[0], &json!("approved")), decision(&waiting[1], &json!("approved")),
        ]});
        assert_eq!(till.setting.post(path, &other).await.status(), StatusCode::UNPROCESSABLE_ENTITY);
    }
}

/// A decision over HTTP is the JSON of a `Decision`, as another process makes it.
#[tokio::test]
async fn decision_is_the_json_of_the_core() {
    let till = open_till([pays(), Answer::from_text("Done.")]);
    let waiting = asked(&till).await;
    let key = ConversationKey::new("c1").unwrap();
    let pending = till.client.pending_calls(key).await.unwrap();
    assert_eq!(waiting[0]["key"], json!(pending[0].key));
    let mut late = pending[0].approve().unwrap();
    late.expires_at = Some(0);
    let denied = pending[1].deny("too much").unwrap();
    let body = |one: &Decision, other: &Decision| json!({"conversation": "c1", "decisions": [one, other]});
    let expired = till.setting.post("/api/chat", &body(&late, &denied)).await;
    assert_eq!(expired.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let message = json_of(expired).await["error"]["message"].clone();
    assert_eq!(message, "a decision has expired: ask again");
    let changed = pending[0].approve_with(json!({"cents": 7})).unwrap();
    let answer = text(till.setting.post("/api/chat", &body(&changed, &denied)).await).await;
    assert!(answer.contains("Done."), "{answer}");
    assert!(results(&till)[0].ends_with("paid 7"), "{:?}", results(&till));
}

/// Another turn with the same decisions is refused, so a failure after the calls have run invites no retry.
#[tokio::test]
async fn failure_after_approved_calls_invites_no_retry() {
    let limited = ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(1)) };
    let till = open_till([pays(), Answer::refused(Error::new(limited, "canary"))]);
    let waiting = asked(&till).await;
    let decisions = [0, 1].map(|place| decision(&waiting[place], &json!("approved")));
    let body = json!({"conversation": "c1", "decisions": decisions});
    let failed = till.setting.post("/api/chat", &body).await;
    assert_eq!(failed.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(failed.headers()["x-should-retry"], "false");
    assert!(!failed.headers().contains_key("retry-after"));
    assert_eq!(till.paid.load(Ordering::SeqCst), 2);
}

/// A refused decision says what is wrong with it and runs nothing, and the calls still wait.
#[tokio::test]
async fn wrong_decisions_are_refused() {
    let till = open_till([pays()]);
    let waiting = asked(&till).await;
    let approved = |place: usize| decision(&waiting[place], &json!("approved"));
    let changed = |cents: Value| decision(&waiting[1], &json!({"approved_with": {"cents": cents}}));
    let with = |field: &str, value: Value| {
        let mut decision = approved(1);
        decision[field] = value;
        decision
    };
    let other_key = waiting[1]["key"].as_str().unwrap().replace("/1/1", "/1/9");
    let (bad, unprocessable) = (StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY);
    let both = json!([approved(0), approved(1)]);
    for (decisions, status, wanted) in [
        (vec![approved(0)], unprocessable, "waits without a decision"),
        (vec![], unprocessable, "waits without a decision"),
        (vec![approved(0), approved(1), approved(1)], unprocessable, "two decisions"),
        (
            vec![approved(0), with("arguments", json!("{}"))],
            unprocessable,
            "other arguments: show the call again",
        ),
        (vec![approved(0), with("key", json!(other_key))], unprocessable, "does not wait for this call"),
        (vec![approved(0), with("expires_at", json!(7))], unprocessable, "expired"),
        (vec![approved(0), changed(json!("two"))], unprocessable, "do not fit"),
        (vec![approved(0), changed(json!(13))], unprocessable, "the changed arguments are denied"),
        (vec![with("key", json!("t1"))], bad, "key"),
        (vec![with("key", json!({"turn": "t1"}))], bad, "key"),
    ] {
        let body = json!({"conversation": "c1", "decisions": decisions});
        let told = told(till.setting.post("/api/chat", &body).await, status).await;
        assert!(told.contains(wanted) && !told.contains("Sent"), "{body}: {told}");
    }
    for (body, status) in [
        (json!({"conversation": "c2", "decisions": both}), unprocessable),
        (json!({"decisions": both}), bad),
        (json!({"conversation": "c1"}), bad),
        (json!({"conversation": "c1", "replaces": "t", "decisions": []}), bad),
    ] {
        assert_eq!(till.setting.post("/api/chat", &body).await.status(), status, "{body}");
    }
    assert_eq!((self::waiting(&till).await, till.paid.load(Ordering::SeqCst)), (waiting, 0));
}

/// Unless the application says so, clients of no protocol see or decide waiting calls.
#[tokio::test]
async fn users_decide_only_if_the_application_says_so() {
    let till = till([pays()]);
    assert_eq!(asked(&till).await, Vec::<Value>::new());
    let resume = json!([resolved("t.1.0.d.c1", &json!({"approved": true}))]);
    let part = answered("c1", "t.1.0.d.c1", true, None);
    for (path, body) in [
        ("/api/chat", json!({"conversation": "c1", "decisions": []})),
        ("/api/ag-ui", run("r2", &["Pay."], &resume)),
        ("/api/ui", json!({"id": "c1", "messages": [continued(&[part])], "trigger": "submit-message"})),
    ] {
        refused(till.setting.post(path, &body).await, StatusCode::FORBIDDEN).await;
    }
    assert_eq!(till.paid.load(Ordering::SeqCst), 0);
}

/// A call of a client-side tool waits for its result, not for a decision.
#[tokio::test]
async fn client_side_calls_wait_for_no_decision() {
    let till = open_till([Answer::from_calls([("c1", "place", "{}")])]);
    assert_eq!(asked(&till).await, Vec::<Value>::new());
}

/// A call whose turn was stopped while it ran is shown as started. Without a decision, the model is asked to verify it.
#[tokio::test]
async fn lost_call_needs_no_decision() {
    let till = open_till([pays(), Answer::from_text("I will check.")]);
    let waiting = asked(&till).await;
    let [lost, other] = [0, 1].map(|place| &waiting[place]);
    let key = ConversationKey::new("c1").unwrap();
    let start = CallStart::new(lost["key"].as_str().unwrap().parse::<CallKey>().unwrap(), "c1");
    till.memory.record_call_start(&key, &start).await.unwrap();
    let shown = self::waiting(&till).await;
    assert_eq!([&shown[0]["started"], &shown[1]["started"]], [true, false]);
    let denied = decision(other, &json!({"denied": "no"}));
    let body = json!({"conversation": "c1", "decisions": [denied]});
    assert!(text(till.setting.post("/api/chat", &body).await).await.contains("I will check."));
    assert_eq!(till.paid.load(Ordering::SeqCst), 0);
    assert!(results(&till)[0].contains("verify"), "{:?}", results(&till));
    let nothing = json!({"conversation": "c1", "decisions": []});
    assert_eq!(till.setting.post("/api/chat", &nothing).await.status(), StatusCode::UNPROCESSABLE_ENTITY);
}

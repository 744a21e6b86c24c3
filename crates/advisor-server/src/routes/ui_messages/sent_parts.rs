//! `SentParts`: results and approvals in the parts of a message.

use std::collections::HashSet;

use serde_json::Value;

use super::super::ask::answers::{SentApproval, SentVerdict};
use super::super::ask::content::{Content, SentResult};
use super::super::ask::shown_call::ShownCall;

/// The parts of a message of the assistant with which a client continues: results of calls, and answers of a person.
#[derive(Debug, Default)]
pub(super) struct SentParts {
    pub(super) results: Vec<SentResult>,
    pub(super) approvals: Vec<SentApproval>,
}

impl SentParts {
    /// Reads the parts of tools. The others are history. Models may repeat the id of a call, so the last result of an id
    /// counts: the others are those of earlier calls. Each approval has a unique id, so all of them count.
    pub(super) fn read(parts: Vec<Value>) -> Self {
        let (mut sent, mut seen) = (Self::default(), HashSet::new());
        for mut part in parts.into_iter().rev() {
            sent.approvals.extend(approval(&part));
            let id = part.get("toolCallId").and_then(Value::as_str).map(str::to_owned);
            if id.is_none_or(|id| seen.insert(id)) {
                sent.results.extend(result(&mut part));
            }
        }
        sent.approvals.reverse();
        sent.results.reverse();
        sent
    }
}

fn result(part: &mut Value) -> Option<SentResult> {
    let call_id = part.get("toolCallId")?.as_str()?.to_owned();
    let (field, is_error) = match part.get("state")?.as_str()? {
        "output-available" => ("output", false),
        "output-error" => ("errorText", true),
        _ => return None,
    };
    let content = match part.get_mut(field)?.take() {
        Value::String(text) => text,
        value => value.to_string(),
    };
    Some(SentResult { call_id, content: Content::Text(content), is_error })
}

/// Reads the answer that `addToolApprovalResponse` writes into a part.
fn approval(part: &Value) -> Option<SentApproval> {
    if part.get("state")?.as_str()? != "approval-responded" {
        return None;
    }
    let approval = part.get("approval")?;
    let reason = approval.get("reason").and_then(Value::as_str).map(str::to_owned);
    let verdict = SentVerdict::new(approval.get("approved")?.as_bool()?, reason);
    Some(SentApproval { id: approval.get("id")?.as_str()?.to_owned(), verdict, shown: shown(part) })
}

/// Returns the call that a part shows. The name of its tool is in its type, unless the tool is dynamic.
fn shown(part: &Value) -> ShownCall {
    let text = |field: &str| part.get(field).and_then(Value::as_str);
    let of_type = text("type").and_then(|kind| kind.strip_prefix("tool-"));
    ShownCall::new(of_type.or_else(|| text("toolName")), part.get("input"))
}

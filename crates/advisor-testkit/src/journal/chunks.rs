//! The chunks of a turn as events.

use advisor_core::{Chunk, ToolEvent, ToolEventKind};
use serde_json::{Value, json};

use super::Journal;

impl Journal {
    /// Records a chunk as the reader of a turn sees it: `tool.start c1`, `tool.progress c1`, `tool.end c1`,
    /// `tool.not_started c1`, `usage r1`, `round.restarted r1`, `round.completed r1` or `turn.completed`.
    ///
    /// The fields have the names of tools, their arguments, and counts of tokens. Blocks are left out, and so are the
    /// texts of answers and results.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{ChatResponse, Chunk};
    /// use advisor_testkit::Journal;
    ///
    /// let journal = Journal::timed();
    /// journal.record_chunk(&Chunk::Completed(ChatResponse::from("Hello.")));
    /// journal.assert_order(&["turn.completed"]);
    /// assert!(journal.events()[0].at_ms.is_some());
    /// ```
    pub fn record_chunk(&self, chunk: &Chunk) {
        let round = chunk.round();
        match chunk {
            Chunk::Tool(event) => self.record_tool(event),
            Chunk::Usage { usage, .. } => {
                let tokens =
                    json!({"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens});
                self.record_with(format!("usage r{round}"), tokens);
            }
            Chunk::AttemptRestarted { .. } => self.record(format!("round.restarted r{round}")),
            Chunk::RoundCompleted(_) => self.record(format!("round.completed r{round}")),
            Chunk::Completed(response) => {
                let reason = json!({"finish": response.finish().reason, "round": round});
                self.record_with("turn.completed", reason);
            }
            _ => {}
        }
    }

    fn record_tool(&self, event: &ToolEvent) {
        let (what, fields): (_, Value) = match &event.kind {
            ToolEventKind::Started { arguments } => {
                ("start", json!({"name": event.name, "arguments": arguments}))
            }
            ToolEventKind::Progress(_) => ("progress", json!({"name": event.name})),
            ToolEventKind::Finished(result) => {
                ("end", json!({"name": event.name, "is_error": result.is_error}))
            }
            ToolEventKind::NotStarted { reason, .. } => {
                ("not_started", json!({"name": event.name, "reason": reason.as_str()}))
            }
            _ => return,
        };
        self.record_with(format!("tool.{what} {}", event.call_id), fields);
    }
}

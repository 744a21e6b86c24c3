use serde_json::Value;

use super::{Checked, Next, Violation, check_all, object, require, text};
use crate::Frame;

/// Checks a stream of [`OpenAiChat`](crate::OpenAiChat).
///
/// # Errors
/// The first frame that breaks a rule:
/// - The role comes first, once. Ids do not change.
/// - Calls have an index, and an id and a name once.
/// - One chunk has a finish reason, and only token counts follow it.
/// - `[DONE]` comes last, also after an error.
pub fn openai_chat(frames: &[Frame]) -> Result<(), Violation> {
    let mut state = State::default();
    check_all(frames, |frame| state.check(frame))
}

#[derive(Debug, Default)]
struct State {
    id: Option<String>,
    stage: Stage,
    calls: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    New,
    Open,
    Finished,
    Counted,
    Failed,
}

impl State {
    fn check(&mut self, frame: &Frame) -> Checked {
        if frame.is_done() {
            let may_end = matches!(self.stage, Stage::Finished | Stage::Counted | Stage::Failed);
            require(may_end, "`[DONE]` follows a finish reason or an error")?;
            return Ok(Next::End);
        }
        let chunk = object(frame)?;
        require(!matches!(self.stage, Stage::Counted | Stage::Failed), "only `[DONE]` follows")?;
        if let Some(error) = chunk.get("error") {
            text(error, "message").and(text(error, "type"))?;
            self.stage = Stage::Failed;
            return Ok(Next::Open);
        }
        require(text(&chunk, "object")? == "chat.completion.chunk", "the object is a chunk")?;
        text(&chunk, "model")?;
        require(chunk.get("created").is_some_and(Value::is_u64), "a chunk has the time of its answer")?;
        let id = text(&chunk, "id")?;
        require(self.id.get_or_insert_with(|| id.into()) == id, "the id does not change")?;
        match chunk.get("choices").and_then(Value::as_array).map(Vec::as_slice) {
            Some([]) => {
                require(self.stage == Stage::Finished, "token counts follow the finish reason")?;
                require(
                    chunk.get("usage").is_some_and(Value::is_object),
                    "a chunk without choices has token counts",
                )?;
                self.stage = Stage::Counted;
                Ok(())
            }
            Some([choice]) => self.check_choice(choice),
            _ => Err("a chunk has one choice".into()),
        }?;
        Ok(Next::Open)
    }

    fn check_choice(&mut self, choice: &Value) -> Result<(), String> {
        require(self.stage != Stage::Finished, "no choice follows the finish reason")?;
        require(choice.get("index").is_some_and(Value::is_u64), "a choice has an index")?;
        let delta = choice.get("delta").filter(|delta| delta.is_object()).ok_or("a choice has a delta")?;
        let is_first = self.stage == Stage::New;
        require(is_first == delta.get("role").is_some(), "the role comes in the first chunk")?;
        self.stage = Stage::Open;
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            require(call.get("index").and_then(Value::as_u64) == Some(self.calls), "calls are numbered")?;
            text(call, "id")?;
            let function = call.get("function").ok_or("a call has a function")?;
            text(function, "name").and(text(function, "arguments"))?;
            self.calls += 1;
        }
        match choice.get("finish_reason") {
            Some(Value::Null) => Ok(()),
            Some(Value::String(reason)) => {
                self.stage = Stage::Finished;
                require(delta.as_object().is_some_and(serde_json::Map::is_empty), "the last delta is empty")?;
                require((reason == "tool_calls") == (self.calls > 0), "the finish reason tells of calls")
            }
            _ => Err("a choice has a finish reason or null".into()),
        }
    }
}

//! Checks a stream of `OpenAiChat` by the rules of its protocol.

use advisor_sse::Frame;
use serde_json::Value;

use super::{Checked, Next, at, check_all, object, require, text};

/// Checks a stream of [`OpenAiChat`](advisor_sse::OpenAiChat).
///
/// # Errors
/// The first frame that breaks a rule:
/// - The role comes first, once. Id, model and time do not change.
/// - Calls have an index, and an id and a name once.
/// - One chunk has a finish reason, and only token counts follow it. Chunks before them have none.
/// - `[DONE]` comes last, also after an error.
pub(crate) fn openai_chat(frames: &[Frame]) -> Result<(), String> {
    let mut state = State::default();
    check_all(frames, |frame| state.check(frame))
}

#[derive(Debug, Default)]
struct State {
    head: Option<Head>,
    stage: Stage,
    calls: u64,
}

/// The fields that all chunks repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Head {
    id: String,
    model: String,
    created: u64,
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
        let head = Head::new(&chunk)?;
        require(*self.head.get_or_insert_with(|| head.clone()) == head, "id, model and time do not change")?;
        match chunk.get("choices").and_then(Value::as_array).map(Vec::as_slice) {
            Some([]) => self.check_counts(at(&chunk, "/usage"))?,
            Some([choice]) => {
                require(at(&chunk, "/usage").is_null(), "only the last chunk has token counts")?;
                self.check_choice(choice)?;
            }
            _ => return Err("a chunk has one choice".into()),
        }
        Ok(Next::Open)
    }

    fn check_counts(&mut self, usage: &Value) -> Result<(), String> {
        require(self.stage == Stage::Finished, "token counts follow the finish reason")?;
        let counts = ["/prompt_tokens", "/completion_tokens", "/total_tokens"];
        require(
            counts.iter().all(|count| at(usage, count).is_u64()),
            "a chunk without choices has token counts",
        )?;
        self.stage = Stage::Counted;
        Ok(())
    }

    fn check_choice(&mut self, choice: &Value) -> Result<(), String> {
        require(self.stage != Stage::Finished, "no choice follows the finish reason")?;
        require(*at(choice, "/index") == 0, "a choice has an index")?;
        let delta = at(choice, "/delta").as_object().ok_or("a choice has a delta")?;
        let is_first = self.stage == Stage::New;
        require(is_first == delta.contains_key("role"), "the role comes in the first chunk")?;
        self.stage = Stage::Open;
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.check_call(call)?;
        }
        match choice.get("finish_reason") {
            Some(Value::Null) => Ok(()),
            Some(Value::String(reason)) => {
                self.stage = Stage::Finished;
                require(delta.is_empty(), "the last delta is empty")?;
                require((reason == "tool_calls") == (self.calls > 0), "the finish reason tells of calls")
            }
            _ => Err("a choice has a finish reason or null".into()),
        }
    }

    fn check_call(&mut self, call: &Value) -> Result<(), String> {
        require(at(call, "/index").as_u64() == Some(self.calls), "calls are numbered")?;
        text(call, "id")?;
        require(at(call, "/type") == "function", "a call is one of a function")?;
        let function = at(call, "/function");
        text(function, "name").and(text(function, "arguments"))?;
        self.calls += 1;
        Ok(())
    }
}

impl Head {
    fn new(chunk: &Value) -> Result<Self, String> {
        require(text(chunk, "object")? == "chat.completion.chunk", "the object is a chunk")?;
        let created = at(chunk, "/created").as_u64().ok_or("a chunk has the time of its answer")?;
        Ok(Self { id: text(chunk, "id")?.into(), model: text(chunk, "model")?.into(), created })
    }
}

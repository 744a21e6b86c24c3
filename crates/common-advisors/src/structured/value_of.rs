//! `value_of`: the value of a turn's response, or an error of kind `InvalidOutput`.

use advisor_core::{ChatResponse, Error, ErrorKind, FinishReason, Result};
use serde::de::DeserializeOwned;

use crate::structured::OutputFormat;

/// Returns the value of a turn's response. The response may be unvalidated, for example if a limit ended the turn.
pub(crate) fn value_of<T: DeserializeOwned>(format: &OutputFormat, response: &ChatResponse) -> Result<T> {
    let value = format.parse(&response.text()).ok();
    value.and_then(|value| serde_json::from_value(value).ok()).ok_or_else(|| {
        let text = ended_without_value(&response.finish().reason);
        Error::new(ErrorKind::InvalidOutput, text).or_partial(response.clone())
    })
}

/// Returns the text of the error of a turn that ended for this reason, without a value.
pub(crate) fn ended_without_value(reason: &FinishReason) -> String {
    let cause = match reason {
        FinishReason::ToolCalls => {
            return "the turn waits for tool calls, so it has no value yet; resume it with their decisions or results".into();
        }
        FinishReason::Limit(limit) => format!("it reached {limit}"),
        // A server's own name of a reason can be any text.
        FinishReason::Other(_) => "the provider ended it for a reason of an unknown name".into(),
        known => format!("its finish reason is {known:?}"),
    };
    format!(
        "the turn has no answer in the requested form: {cause}; its last answer is in the error's partial answer"
    )
}

#[cfg(test)]
mod tests {
    use advisor_core::Message;

    use super::*;

    #[test]
    fn error_does_not_quote_server() {
        let reason = FinishReason::Other("Ann said so".into());
        let response = ChatResponse::new(1, Message::assistant("Oslo"), reason);
        let error = value_of::<u8>(&OutputFormat::for_type::<u8>(), &response).unwrap_err().to_string();
        assert!(error.contains("unknown name") && !error.contains("Ann"), "{error}");
    }
}

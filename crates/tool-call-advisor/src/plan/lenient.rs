//! `corrected`: repairs arguments that break their schema but have one clear meaning, according to `Leniency`.

use advisor_core::Leniency;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

/// Maximum number of schema violations that are corrected.
const MOST: usize = 256;

/// Returns the arguments with the corrections that `leniency` allows. They may still not fit.
pub(crate) fn corrected(
    arguments: &Value,
    violations: &[ValidationError<'_>],
    leniency: Leniency,
) -> Option<Value> {
    if leniency == Leniency::Strict {
        return None;
    }
    let mut fitting = arguments.clone();
    for wrong in violations.iter().take(MOST) {
        let place = wrong.instance_path().as_str();
        match wrong.instance().as_ref() {
            Value::Null => leave_out(&mut fitting, place),
            Value::String(text) if leniency == Leniency::Lenient => {
                if let (Some(meant), Some(slot)) = (meant(text, wrong), fitting.pointer_mut(place)) {
                    *slot = meant;
                }
            }
            _ => {}
        }
    }
    Some(fitting)
}

/// Removes a property. A list item stays, since removing it would shift the items after it.
fn leave_out(arguments: &mut Value, place: &str) {
    if let Some((object, name)) = place.rsplit_once('/')
        && let Some(Value::Object(properties)) = arguments.pointer_mut(object)
    {
        properties.remove(&name.replace("~1", "/").replace("~0", "~"));
    }
}

/// Returns the value that the schema wants in place of a string, if the string can only mean that value.
fn meant(text: &str, wrong: &ValidationError<'_>) -> Option<Value> {
    let ValidationErrorKind::Type { kind } = wrong.kind() else { return None };
    let wanted = |wanted| match kind {
        TypeKind::Single(kind) => *kind == wanted,
        TypeKind::Multiple(kinds) => kinds.contains(wanted),
    };
    // The parser would skip white space around it.
    if text.trim() != text {
        return None;
    }
    match serde_json::from_str(text).ok()? {
        // If no boolean is wanted, it does not fit.
        Value::Bool(meant) => Some(Value::Bool(meant)),
        Value::Number(meant) if wanted(JsonType::Number) => Some(Value::Number(meant)),
        Value::Number(meant) if wanted(JsonType::Integer) && !meant.is_f64() => Some(Value::Number(meant)),
        _ => None,
    }
}

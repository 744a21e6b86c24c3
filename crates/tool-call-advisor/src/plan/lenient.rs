use advisor_core::Leniency;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::Value;

/// Of so many places at most something is made that fits.
const MOST: usize = 256;

/// Returns what arguments that do not fit can only mean, if that fits.
pub(crate) fn fitting(validator: &Validator, arguments: &Value, leniency: Leniency) -> Option<Value> {
    if leniency == Leniency::Strict {
        return None;
    }
    let mut fitting = arguments.clone();
    for wrong in validator.iter_errors(arguments).take(MOST) {
        let place = wrong.instance_path().as_str();
        match wrong.instance().as_ref() {
            Value::Null => leave_out(&mut fitting, place),
            Value::String(text) if leniency == Leniency::Lenient => {
                if let (Some(meant), Some(slot)) = (meant(text, &wrong), fitting.pointer_mut(place)) {
                    *slot = meant;
                }
            }
            _ => {}
        }
    }
    // It covers what was required and left out, and all that is still wrong.
    validator.is_valid(&fitting).then_some(fitting)
}

/// Leaves out a property. An item of a list stays, or those behind it would move.
fn leave_out(arguments: &mut Value, place: &str) {
    if let Some((object, name)) = place.rsplit_once('/')
        && let Some(Value::Object(properties)) = arguments.pointer_mut(object)
    {
        properties.remove(&name.replace("~1", "/").replace("~0", "~"));
    }
}

/// Returns what the schema wants in the place of a text, if the text can only be that.
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
        // Where no boolean is wanted it does not fit.
        Value::Bool(meant) => Some(Value::Bool(meant)),
        Value::Number(meant) if wanted(JsonType::Number) => Some(Value::Number(meant)),
        Value::Number(meant) if wanted(JsonType::Integer) && !meant.is_f64() => Some(Value::Number(meant)),
        _ => None,
    }
}

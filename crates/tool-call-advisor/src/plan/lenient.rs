//! `corrected`: repairs arguments that break their schema but have one clear meaning, according to `Leniency`.

use advisor_core::Leniency;
use serde_json::Value;

use crate::plan::structure::Misfit;

/// The longest text that means a number or a boolean.
const LONGEST: usize = 64;

/// Returns the arguments with the corrections that `leniency` allows, if there are any. They may still not fit.
pub(crate) fn corrected(arguments: &Value, misfits: &[Misfit<'_>], leniency: Leniency) -> Option<Value> {
    if leniency == Leniency::Strict {
        return None;
    }
    let mut fitting = None;
    for wrong in misfits {
        let copy = || arguments.clone();
        match arguments.pointer(&wrong.place) {
            Some(Value::Null) => leave_out(fitting.get_or_insert_with(copy), &wrong.place),
            Some(Value::String(text)) if leniency == Leniency::Lenient => {
                if let Some(meant) = meant(text, wrong)
                    && let Some(slot) = fitting.get_or_insert_with(copy).pointer_mut(&wrong.place)
                {
                    *slot = meant;
                }
            }
            _ => {}
        }
    }
    fitting
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
fn meant(text: &str, wrong: &Misfit<'_>) -> Option<Value> {
    // The parser would skip white space around it.
    if text.len() > LONGEST || text.trim() != text {
        return None;
    }
    match serde_json::from_str(text).ok()? {
        Value::Bool(meant) if wrong.wants("boolean") => Some(Value::Bool(meant)),
        Value::Number(meant) if wrong.wants("number") => Some(Value::Number(meant)),
        Value::Number(meant) if wrong.wants("integer") && !meant.is_f64() => Some(Value::Number(meant)),
        _ => None,
    }
}

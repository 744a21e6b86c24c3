use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use advisor_core::{Error, Leniency, Result, Text, ToolDefinition, ToolSet};
use jsonschema::Validator;
use serde_json::Value;

use crate::plan::lenient::fitting;
use crate::plan::patterns;
use crate::plan::work::Work;

/// Compiled schemas of tools: each is compiled once and shared.
#[derive(Default)]
pub(crate) struct Schemas(Mutex<HashMap<Text, (Value, Arc<Validator>)>>);

/// Number of cached schemas at which the cache is cleared. One process is not expected to have as many tools.
const MOST: usize = 1024;

/// The bytes of arguments that an async thread checks, and those times the patterns of the schema.
const LITTLE_BYTES: usize = 64 << 10;
const LITTLE_WORK: usize = 4 << 10;

/// The bytes of arguments times the patterns of the schema that are checked at all.
const MOST_WORK: usize = 16 << 20;

/// The error of the first invalid schema of a set, if any.
struct Defect(Option<String>);

impl Schemas {
    /// Returns the arguments to pass to the tool, if they fit its schema or can be corrected.
    ///
    /// # Errors
    /// The mismatch and its location, as text for the model; also if the schema itself is invalid.
    pub(crate) fn fit(
        &self,
        tool: &ToolDefinition,
        arguments: Value,
        leniency: Leniency,
    ) -> Result<Value, String> {
        // A tool without a schema is offered to the model as one that takes any object.
        if tool.parameters.is_null() {
            let object = arguments.is_object().then_some(arguments);
            return object.ok_or_else(|| String::from("they are no object"));
        }
        let validator =
            self.validator(tool).map_err(|error| format!("the tool's own schema is invalid: {error}"))?;
        if validator.is_valid(&arguments) {
            return Ok(arguments);
        }
        fitting(&validator, &arguments, leniency).ok_or_else(|| misfits(&validator, &arguments))
    }

    /// Returns the work of checking arguments of so many bytes.
    pub(crate) fn work(tool: &ToolDefinition, bytes: usize) -> Work {
        let patterns = patterns::count(&tool.parameters);
        match patterns.saturating_mul(bytes) {
            work if work > MOST_WORK => Work::TooMuch { patterns },
            work if work > LITTLE_WORK || bytes > LITTLE_BYTES => Work::Much,
            _ => Work::Little,
        }
    }

    /// Checks that the schemas of a set are valid, once per set.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration), for the first invalid schema.
    pub(crate) fn validate(&self, tools: &ToolSet) -> Result<()> {
        let Defect(defect) =
            tools.wire_form(|set| Defect(set.definitions().find_map(|tool| self.defect(tool))));
        defect.as_ref().map_or(Ok(()), |defect| Err(Error::configuration(defect.clone())))
    }

    fn defect(&self, tool: &ToolDefinition) -> Option<String> {
        if tool.parameters.is_null() {
            return None;
        }
        let error = self.validator(tool).err()?;
        Some(format!("the schema of the tool `{}` is invalid, mend it: {error}", tool.name))
    }

    fn validator(&self, tool: &ToolDefinition) -> Result<Arc<Validator>, String> {
        if let Some((schema, validator)) = self.lock().get(&tool.name)
            && *schema == tool.parameters
        {
            return Ok(Arc::clone(validator));
        }
        let compiled = Arc::new(patterns::compile(&tool.parameters)?);
        let mut cache = self.lock();
        if cache.len() >= MOST {
            cache.clear();
        }
        cache.insert(tool.name.clone(), (tool.parameters.clone(), Arc::clone(&compiled)));
        Ok(compiled)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Text, (Value, Arc<Validator>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the first few violations, each with its position.
fn misfits(validator: &Validator, arguments: &Value) -> String {
    let wrong = validator.iter_errors(arguments).take(5).map(|error| match error.instance_path().as_str() {
        "" => error.to_string(),
        place => format!("{place}: {error}"),
    });
    wrong.collect::<Vec<_>>().join("; ")
}

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schemas").field(&self.lock().len()).finish()
    }
}

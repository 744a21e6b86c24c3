use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use advisor_core::{Text, ToolDefinition};
use jsonschema::Validator;
use serde_json::Value;

/// Compiled schemas of tools: each is compiled once and shared.
#[derive(Default)]
pub(crate) struct Schemas(Mutex<HashMap<Text, (Value, Arc<Validator>)>>);

/// More tools than this in one process are not expected; the cache begins anew beyond.
const MOST: usize = 1024;

impl Schemas {
    /// Checks arguments against a tool's schema.
    ///
    /// # Errors
    /// What is wrong and where, for the model to read. Also if the schema itself is no valid one.
    pub(crate) fn check(&self, tool: &ToolDefinition, arguments: &Value) -> Result<(), String> {
        // A tool without a schema takes any object, as it is offered.
        if tool.parameters.is_null() {
            return Ok(());
        }
        let validator = self.validator(tool)?;
        let mut wrong = validator.iter_errors(arguments).take(5).peekable();
        if wrong.peek().is_none() {
            return Ok(());
        }
        let wrong: Vec<_> = wrong
            .map(|error| match error.instance_path().as_str() {
                "" => error.to_string(),
                path => format!("{path}: {error}"),
            })
            .collect();
        Err(wrong.join("; "))
    }

    fn validator(&self, tool: &ToolDefinition) -> Result<Arc<Validator>, String> {
        if let Some((schema, validator)) = self.lock().get(&tool.name)
            && *schema == tool.parameters
        {
            return Ok(Arc::clone(validator));
        }
        let compiled = jsonschema::validator_for(&tool.parameters)
            .map_err(|error| format!("the tool's own schema is invalid: {error}"))?;
        let compiled = Arc::new(compiled);
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

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schemas").field(&self.lock().len()).finish()
    }
}

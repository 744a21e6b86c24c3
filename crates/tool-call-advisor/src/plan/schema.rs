use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use advisor_core::{Error, Leniency, Result, Text, ToolDefinition, ToolSet};
use jsonschema::Validator;
use serde_json::Value;

use crate::plan::lenient::fitting;

/// Compiled schemas of tools: each is compiled once and shared.
#[derive(Default)]
pub(crate) struct Schemas(Mutex<HashMap<Text, (Value, Arc<Validator>)>>);

/// More tools than this in one process are not expected; the cache begins anew beyond.
const MOST: usize = 1024;

/// What is wrong with the first schema of a set, if anything is.
struct Defect(Option<String>);

impl Schemas {
    /// Returns the arguments as the tool is to be given them, if they fit its schema.
    ///
    /// # Errors
    /// What is wrong and where, for the model to read. Also if the schema itself is no valid one.
    pub(crate) fn fit(
        &self,
        tool: &ToolDefinition,
        arguments: Value,
        leniency: Leniency,
    ) -> Result<Value, String> {
        // A tool without a schema takes any object, as it is offered.
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

    /// Checks that the schemas of a set are valid, once for the set.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration), for the first that is not.
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
        let compiled = jsonschema::validator_for(&tool.parameters).map_err(|error| error.to_string())?;
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

/// What is wrong with arguments and where: the first few places.
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

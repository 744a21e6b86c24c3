//! `Schemas`: compiled JSON schemas, cached; validates arguments and tool sets.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use advisor_core::{Error, Leniency, Result, Text, ToolDefinition, ToolSet};
use jsonschema::ValidationError;
use serde_json::Value;

use crate::plan::lenient::fitting;
use crate::plan::patterns::Compiled;
use crate::plan::work::Purpose;

/// Compiled schemas of tools: each is compiled once and shared.
#[derive(Default)]
pub(crate) struct Schemas(Mutex<HashMap<Text, (Value, Arc<Compiled>)>>);

/// Number of cached schemas at which the cache is cleared. One process is not expected to have as many tools.
const MOST: usize = 1024;

/// The bytes of arguments that an async thread checks, and the work of that.
const LITTLE_BYTES: usize = 64 << 10;
const LITTLE_WORK: usize = 4 << 10;

/// The work of a check that is done at all, and of one whose violations are all listed, in memory.
const MOST_WORK: usize = 16 << 20;
const MOST_LISTED: usize = 128 << 10;

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
        let compiled =
            self.compiled(tool).map_err(|error| format!("the tool's own schema is invalid: {error}"))?;
        if compiled.work(&arguments, Purpose::Fit, MOST_WORK).is_none() {
            return Err(String::from("comparing them with its schema takes too long; make them shorter"));
        }
        let validator = &compiled.validator;
        if validator.is_valid(&arguments) {
            return Ok(arguments);
        }
        match compiled.work(&arguments, Purpose::List, MOST_WORK) {
            None => {
                return Err(String::from("they do not fit its schema, and are too long to find the place"));
            }
            Some(work) if work > MOST_LISTED => return Err(misfits(validator.validate(&arguments).err())),
            Some(_) => {}
        }
        fitting(validator, &arguments, leniency).ok_or_else(|| misfits(validator.iter_errors(&arguments)))
    }

    /// Checks whether so many bytes of arguments are few enough to be read by an async thread.
    pub(crate) fn is_short(bytes: usize) -> bool {
        bytes <= LITTLE_BYTES
    }

    /// Checks whether the check of arguments is too short to notice.
    pub(crate) fn is_quick(&self, tool: &ToolDefinition, arguments: &Value) -> bool {
        let has_little =
            |compiled: Arc<Compiled>| compiled.work(arguments, Purpose::List, LITTLE_WORK).is_some();
        // Without a schema, there is nothing to compare.
        tool.parameters.is_null() || self.compiled(tool).map_or(true, has_little)
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
        let error = self.compiled(tool).err()?;
        Some(format!("the schema of the tool `{}` is invalid, mend it: {error}", tool.name))
    }

    fn compiled(&self, tool: &ToolDefinition) -> Result<Arc<Compiled>, String> {
        if let Some((schema, compiled)) = self.lock().get(&tool.name)
            && *schema == tool.parameters
        {
            return Ok(Arc::clone(compiled));
        }
        let compiled = Arc::new(Compiled::new(&tool.parameters, tool.is_foreign())?);
        let mut cache = self.lock();
        if cache.len() >= MOST {
            cache.clear();
        }
        cache.insert(tool.name.clone(), (tool.parameters.clone(), Arc::clone(&compiled)));
        Ok(compiled)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Text, (Value, Arc<Compiled>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the first few violations, each with its position.
fn misfits<'a>(violations: impl IntoIterator<Item = ValidationError<'a>>) -> String {
    let wrong = violations.into_iter().take(5).map(|error| match error.instance_path().as_str() {
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

//! `Schemas`: compiled JSON schemas, cached; validates arguments and tool sets.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use advisor_core::{Error, Leniency, Result, Text, ToolDefinition, ToolSet};
use jsonschema::ValidationError;
use serde_json::Value;

use crate::plan::lenient::corrected;
use crate::plan::patterns::Compiled;
use crate::plan::subschemas::WORK_IN_JSON;

/// Compiled schemas of tools: each is compiled once and shared.
#[derive(Default)]
pub(crate) struct Schemas(Mutex<HashMap<Text, (Value, Arc<Compiled>)>>);

/// Number of cached schemas at which the cache is cleared. One process is not expected to have as many tools.
const MOST: usize = 1024;

/// The bytes of arguments that an async thread checks, and the work of each step of that.
const LITTLE_BYTES: usize = 64 << 10;
const LITTLE_WORK: usize = 4 << 10;

/// The least work of a list of violations, of which it has 16 then.
const LITTLE_LISTED: usize = 64 << 10;

/// The work of each step that is done at all. At most 4,096 violations are in memory, with 1 Mi parts of values.
const MOST_WORK: usize = 16 << 20;

/// A step of a check that takes too much work.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TooLong {
    Comparison,
    List,
}

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
        let corrected = self.fit_within(tool, &arguments, leniency, MOST_WORK).unwrap_or_else(|step| {
            Err(String::from(match step {
                TooLong::Comparison => "comparing them with its schema takes too long; make them shorter",
                TooLong::List => "they do not fit its schema, and are too long to find the place",
            }))
        });
        Ok(corrected?.unwrap_or(arguments))
    }

    /// As [`fit`](Self::fit), with the corrected arguments if any are. `None` if that may be noticed.
    pub(crate) fn fit_quickly(
        &self,
        tool: &ToolDefinition,
        arguments: &Value,
        leniency: Leniency,
    ) -> Option<Result<Option<Value>, String>> {
        self.fit_within(tool, arguments, leniency, LITTLE_WORK).ok()
    }

    fn fit_within(
        &self,
        tool: &ToolDefinition,
        arguments: &Value,
        leniency: Leniency,
        work: usize,
    ) -> Result<Result<Option<Value>, String>, TooLong> {
        // A tool without a schema is offered to the model as one that takes any object.
        if tool.parameters.is_null() {
            let is_object = arguments.is_object();
            return Ok(if is_object { Ok(None) } else { Err(String::from("they are no object")) });
        }
        let compiled = match self.compiled(tool) {
            Ok(compiled) => compiled,
            Err(error) => return Ok(Err(format!("the tool's own schema is invalid: {error}"))),
        };
        if compiled.is_valid(arguments, work).ok_or(TooLong::Comparison)? {
            return Ok(Ok(None));
        }
        let read = |violations: Vec<ValidationError<'_>>| {
            (corrected(arguments, &violations, leniency), misfits(&violations))
        };
        let (corrected, misfits) =
            compiled.violations(arguments, work.max(LITTLE_LISTED), read).ok_or(TooLong::List)?;
        let Some(corrected) = corrected else { return Ok(Err(misfits)) };
        let fits = compiled.is_valid(&corrected, work).ok_or(TooLong::Comparison)?;
        Ok(if fits { Ok(Some(corrected)) } else { Err(misfits) })
    }

    /// Checks whether so many bytes of arguments are few enough to be read by an async thread.
    pub(crate) fn is_short(bytes: usize) -> bool {
        bytes <= LITTLE_BYTES
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
fn misfits(violations: &[ValidationError<'_>]) -> String {
    let wrong = violations.iter().take(5).map(|error| {
        let mut text = error.to_string();
        // That of `not` has the schema.
        if text.contains(WORK_IN_JSON) {
            text = format!("{} is not allowed", error.instance());
        }
        match error.instance_path().as_str() {
            "" => text,
            place => format!("{place}: {text}"),
        }
    });
    wrong.collect::<Vec<_>>().join("; ")
}

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schemas").field(&self.lock().len()).finish()
    }
}

//! `WholeSchemas`: the application's schemas, compiled and cached, with all of their keywords. Without the feature
//! `schema-validation`, no schema is checked but for its structure.

pub(crate) use whole::WholeSchemas;

#[cfg(feature = "schema-validation")]
mod whole {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex, PoisonError};

    use advisor_core::{Text, ToolDefinition};
    use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
    use serde_json::Value;

    use crate::plan::structure::shortened;

    /// Compiled schemas of tools: each is compiled once and shared.
    #[derive(Default)]
    pub(crate) struct WholeSchemas(Mutex<HashMap<Text, (Value, WholeSchema)>>);

    /// A compiled schema.
    #[derive(Clone)]
    pub(crate) struct WholeSchema(Arc<Validator>);

    /// Number of cached schemas at which the cache is cleared. One process is not expected to have as many tools.
    const MOST: usize = 1024;

    /// The bytes that a compiled regular expression may have, and the steps back of one with look-ahead or back references:
    /// a model writes the text that it is compared with.
    const MOST_BYTES: usize = 8 << 20;
    const MOST_STEPS_BACK: usize = 200_000;

    impl WholeSchemas {
        /// Returns the schema of a tool; `None` if it has none, or another program wrote it.
        ///
        /// # Errors
        /// The defect of the schema.
        pub(crate) fn of(&self, tool: &ToolDefinition) -> Result<Option<WholeSchema>, String> {
            if tool.origin.is_some() || tool.parameters.is_null() {
                return Ok(None);
            }
            let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((schema, compiled)) = lock().get(&tool.name)
                && *schema == tool.parameters
            {
                return Ok(Some(compiled.clone()));
            }
            let patterns =
                PatternOptions::fancy_regex().size_limit(MOST_BYTES).backtrack_limit(MOST_STEPS_BACK);
            let validator = jsonschema::options().with_pattern_options(patterns).build(&tool.parameters);
            let compiled = WholeSchema(Arc::new(validator.map_err(|error| error.to_string())?));
            let mut cache = lock();
            if cache.len() >= MOST {
                cache.clear();
            }
            cache.insert(tool.name.clone(), (tool.parameters.clone(), compiled.clone()));
            Ok(Some(compiled))
        }

        /// Returns what is wrong with the form of a schema, which is not compiled for that.
        pub(crate) fn form_defect(schema: &Value) -> Option<String> {
            // The form of an unknown dialect would be fetched from the address that the schema names.
            if schema.is_null() || Draft::default().detect(schema) == Draft::Unknown {
                return None;
            }
            jsonschema::meta::validate(schema).err().map(|error| error.to_string())
        }
    }

    impl WholeSchema {
        pub(crate) fn fits(&self, arguments: &Value) -> bool {
            self.0.is_valid(arguments)
        }

        /// Returns the first misfits, each with its place, for the model. They do not repeat the arguments.
        pub(crate) fn misfits(&self, arguments: &Value, most: usize) -> String {
            let described = |error: ValidationError<'_>| match error.instance_path().as_str() {
                "" => error.masked().to_string(),
                place => format!("{}: {}", shortened(place.to_owned()), error.masked()),
            };
            self.0.iter_errors(arguments).take(most).map(described).collect::<Vec<_>>().join("; ")
        }
    }
}

#[cfg(not(feature = "schema-validation"))]
mod whole {
    use std::convert::Infallible;

    use advisor_core::ToolDefinition;
    use serde_json::Value;

    #[derive(Default)]
    pub(crate) struct WholeSchemas;

    #[derive(Clone)]
    pub(crate) struct WholeSchema(Infallible);

    impl WholeSchemas {
        pub(crate) fn of(&self, _tool: &ToolDefinition) -> Result<Option<WholeSchema>, String> {
            Ok(None)
        }

        pub(crate) fn form_defect(_schema: &Value) -> Option<String> {
            None
        }
    }

    impl WholeSchema {
        pub(crate) fn fits(&self, _arguments: &Value) -> bool {
            match self.0 {}
        }

        pub(crate) fn misfits(&self, _arguments: &Value, _most: usize) -> String {
            match self.0 {}
        }
    }
}

#[cfg(all(test, feature = "schema-validation"))]
mod tests {
    use advisor_core::ToolDefinition;
    use serde_json::{Value, json};

    use super::WholeSchemas;
    use super::whole::WholeSchema;

    fn compiled(schema: Value) -> Result<Option<WholeSchema>, String> {
        WholeSchemas::default().of(&ToolDefinition::new("f", "A tool.", schema))
    }

    #[test]
    fn law_r1_patterns_of_any_engine_are_checked_in_few_steps() {
        let text = |pattern: &str| json!({"properties": {"a": {"pattern": pattern}}});
        for (pattern, fitting, other) in [
            ("^(?!\\.)(?!.*\\.\\.)\\S+@\\S+$", "a@b.c", ".a@b.c"),
            ("^.{1,500}$", "a", ""),
            ("^[^<>]{1,2000}$", "a", "<"),
            ("^(a+)+\\1$", "aa", &("a".repeat(40) + "!")[..]),
        ] {
            let schema = compiled(text(pattern)).unwrap().unwrap();
            assert!(schema.fits(&json!({"a": fitting})), "{pattern}");
            assert!(!schema.fits(&json!({"a": other})), "{pattern}");
        }
        for invalid in ["(?<!a", "(a", "\\p{L}{1000}"] {
            assert!(compiled(text(invalid)).is_err(), "{invalid}");
        }
    }

    #[test]
    fn schemas_of_other_programs_are_not_compiled() {
        let tool = ToolDefinition::new("f", "A tool.", json!({"pattern": "(a"}));
        let schemas = WholeSchemas::default();
        assert!(schemas.of(&tool).is_err());
        assert!(schemas.of(&ToolDefinition { origin: Some("server".into()), ..tool }).unwrap().is_none());
        assert_eq!(WholeSchemas::form_defect(&json!({"type": "object"})), None);
        let malformed = json!({"properties": {"a": {"type": "strng"}}});
        assert!(WholeSchemas::form_defect(&malformed).is_some());
        for dialect in
            ["https://spec.openapis.org/oas/3.1/dialect/base", "file:///dev/zero", "http://127.0.0.1/x"]
        {
            let mut unknown = malformed.clone();
            unknown["$schema"] = dialect.into();
            assert_eq!(WholeSchemas::form_defect(&unknown), None, "nothing is fetched");
        }
    }
}

//! Regular expressions in schemas, which may be those of a server: only an engine of linear time checks them.

use std::collections::{HashMap, HashSet};
use std::ptr;
use std::sync::Arc;

use jsonschema::json::{Json, SerdeJson};
use jsonschema::{PatternOptions, Retrieve, ValidationError, ValidationOptions, Validator};
use serde_json::{Map, Value, json};

use crate::plan::metered::{Metered, MeteredJson, Weights, all_within, length, longest_place, within};
use crate::plan::subschemas::{Document, Kind, Place, is_older, schemas_within, visit, with_work};

/// The bytes that a compiled expression may have.
const MOST_BYTES: usize = 256 << 10;

/// The bytes that a compiled expression may have that is left out.
const MOST_UNUSED_BYTES: usize = 8 << 20;

/// The sizes of expressions: comparing one with a byte of a text takes so much work at most.
const SIZES: [usize; 3] = [1, 4, 16];

/// The bytes of a compiled expression of the size 1.
const UNIT_BYTES: usize = MOST_BYTES / SIZES[2];

/// The expressions of a schema that another program wrote, and the large ones of these. Each is compiled.
const MOST_FOREIGN: usize = 100;
const MOST_LARGE: usize = 10;

/// A compiled schema.
pub(super) struct Compiled {
    validator: Validator<MeteredJson>,
    weights: Weights,
    /// Whether all violations may be found.
    lists: bool,
}

impl Compiled {
    /// Compiles a schema. Expressions that need another engine, such as those with look-ahead, and large ones, such as
    /// `^.{1,500}$`, are left out with what depends on them: the tool itself has to check them. So is what
    /// [another program](Foreign) may not write. So it accepts more, and nothing less.
    ///
    /// # Errors
    /// If the schema or an expression is invalid, or another program wrote it and it has too many of them.
    pub(super) fn new(schema: &Value, is_foreign: bool) -> Result<Self, String> {
        let mut expressions = HashSet::new();
        visit(schema, &mut |schema| expressions.extend(expressions_of(schema)));
        if is_foreign && expressions.len() > MOST_FOREIGN {
            return Err(format!("it has more than {MOST_FOREIGN} regular expressions"));
        }
        let (mut sizes, mut unknown, mut large) = (HashMap::new(), HashSet::new(), 0_usize);
        for expression in expressions {
            if let Some(size) = size(expression) {
                sizes.insert(expression, size);
            } else if is_valid(expression, MOST_BYTES) {
                unknown.insert(expression);
            } else {
                large += 1;
                // The error of the whole schema says where an invalid one is.
                let is_unused = (is_foreign && large > MOST_LARGE) || is_valid(expression, MOST_UNUSED_BYTES);
                unknown.extend(is_unused.then_some(expression));
            }
        }
        let foreign = is_foreign.then(|| Foreign::new(schema));
        let known = match unknown.is_empty() && foreign.is_none() {
            true => schema.clone(),
            false => {
                let document = Document::new(schema);
                LeavingOut { unknown, document, foreign }.known(Place::of_whole(schema))
            }
        };
        // The error of the schema says where it is invalid.
        let plain = options(MOST_BYTES).build(&known).map_err(|error| error.to_string())?;
        let validator = match options(MOST_BYTES).build(&with_work(&known)) {
            Ok(counted) => counted,
            // A name within an unknown keyword may look like a keyword.
            Err(_) if !is_foreign => plain,
            Err(_) => return Err(String::from("a keyword in it is used in another way")),
        };
        let lists = cfg!(panic = "unwind") || !is_foreign;
        Ok(Self { validator, weights: weights(&known, &sizes), lists })
    }

    /// Checks whether arguments fit; `None` if that takes more than this work.
    pub(super) fn is_valid(&self, arguments: &Value, work: usize) -> Option<bool> {
        within(work, self.weights, || self.validator.is_valid(Metered(arguments)))
    }

    /// Passes the violations of arguments to `read`. Returns `None` if finding them takes more than this work.
    pub(super) fn violations<T>(
        &self,
        arguments: &Value,
        work: usize,
        read: impl FnOnce(Vec<ValidationError<'_>>) -> T,
    ) -> Option<T> {
        if !self.lists {
            return None;
        }
        let (levels, names) = longest_place(arguments);
        let kept = self.weights.kept.saturating_mul(levels).saturating_add(names);
        let weights = Weights { kept, ..self.weights };
        all_within(work, weights, || self.validator.iter_errors(Metered(arguments)).collect()).map(read)
    }
}

/// Returns the expressions of a schema, without those within.
fn expressions_of(schema: &Value) -> impl Iterator<Item = &str> {
    let names = schema.get("patternProperties").and_then(Value::as_object);
    let names = names.into_iter().flat_map(Map::keys).map(String::as_str);
    schema.get("pattern").and_then(Value::as_str).into_iter().chain(names)
}

/// Returns the work of parts of a comparison with a schema, whose expressions have these sizes.
fn weights(schema: &Value, sizes: &HashMap<&str, usize>) -> Weights {
    let mut weights = Weights { kept: length(schema), ..Weights::default() };
    let mut checks_names = false;
    visit(schema, &mut |schema| {
        let size = |expression: &str| sizes.get(expression).copied().unwrap_or_default();
        let names =
            schema.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
        weights.name = weights.name.max(names.map(|expression| size(expression)).sum());
        weights.text = weights.text.max(schema.get("pattern").and_then(Value::as_str).map_or(0, size));
        checks_names |= schema.get("propertyNames").is_some();
    });
    weights.name += if checks_names { weights.text } else { 0 };
    weights
}

fn options<F: Json>(most_bytes: usize) -> ValidationOptions<'static, Arc<dyn Retrieve>, F> {
    let linear = PatternOptions::regex().size_limit(most_bytes).dfa_size_limit(MOST_BYTES);
    // Neither is needed to run a tool, and an argument of either may take long to read.
    ValidationOptions::default()
        .with_pattern_options(linear)
        .without_content_media_type_support("application/json")
        .with_format("regex", |_| true)
}

/// Returns the size of an expression, if the engine knows it and it is not too large.
fn size(expression: &str) -> Option<usize> {
    let schema = json!({ "pattern": expression });
    SIZES.into_iter().find(|size| options::<SerdeJson>(size * UNIT_BYTES).build(&schema).is_ok())
}

/// Checks whether an expression of at most so many bytes is valid for any engine. It is compiled for that, and never run.
fn is_valid(expression: &str, most_bytes: usize) -> bool {
    let other = PatternOptions::fancy_regex().size_limit(most_bytes).dfa_size_limit(MOST_BYTES);
    jsonschema::options().with_pattern_options(other).build(&json!({ "pattern": expression })).is_ok()
}

/// Leaves expressions out of a schema, and what another program may not write.
struct LeavingOut<'a> {
    unknown: HashSet<&'a str>,
    document: Document<'a>,
    foreign: Option<Foreign>,
}

/// A schema that another program wrote. It is one document, in one draft, whose references lead to places of schemas in it: the
/// validator compiles what else is possible once for each way there, or does not count it.
struct Foreign {
    /// The addresses of the schemas in it.
    places: HashSet<*const Value>,
    is_older: bool,
}

/// Keywords of another program that say where a schema is, or in which draft.
const NAMES: [&str; 5] = ["$id", "id", "$anchor", "$dynamicAnchor", "$schema"];

/// Keywords of another program that are left out with what depends on them.
const LEFT_OUT: [&str; 3] = ["$dynamicRef", "$recursiveRef", "$vocabulary"];

/// Keywords that depend on all that is beside them.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// Keywords that a draft before 2019 ignores beside a reference.
#[rustfmt::skip]
const CHECKS: [&str; 36] = [
    "type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength",
    "pattern", "items", "additionalItems", "maxItems", "minItems", "uniqueItems", "contains", "maxProperties", "minProperties",
    "required", "properties", "patternProperties", "additionalProperties", "dependencies", "propertyNames", "if", "then", "else",
    "allOf", "anyOf", "oneOf", "not", "format", "contentEncoding", "contentMediaType", "extends",
];

impl Foreign {
    fn new(schema: &Value) -> Self {
        let mut places = HashSet::new();
        visit(schema, &mut |schema| places.extend([ptr::from_ref(schema)]));
        Self { places, is_older: is_older(schema).unwrap_or(false) }
    }
}

impl<'a> LeavingOut<'a> {
    /// Returns the schema without the expressions, and without the keywords that would refuse more without them.
    fn known(&self, place: Place<'a>) -> Value {
        let Value::Object(keywords) = place.node else { return place.node.clone() };
        let is_known = |expression: &str| !self.unknown.contains(expression);
        let names = keywords.get("patternProperties").and_then(Value::as_object);
        let has_known_names = names.is_none_or(|names| names.keys().all(|name| is_known(name)));
        let refers = keywords.get("$ref").is_some_and(Value::is_string);
        let refers_alone = refers && self.foreign.as_ref().is_some_and(|foreign| foreign.is_older);
        let mut known = Map::new();
        for (keyword, value) in keywords {
            let is_kept = match keyword.as_str() {
                check if refers_alone && CHECKS.contains(&check) => continue,
                _ if self.leaves_out(place, keyword, value) => false,
                "pattern" => value.as_str().is_none_or(is_known),
                "patternProperties" | "additionalProperties" => has_known_names,
                // What is left out may have evaluated the rest. What they lead to is compiled once for each way there.
                keyword if UNEVALUATED.contains(&keyword) => false,
                "not" | "oneOf" => !self.loses(place, keyword),
                "if" | "then" | "else" => !self.loses(place, "if"),
                "maxContains" => !self.loses(place, "contains"),
                _ => true,
            };
            if is_kept {
                known.insert(keyword.clone(), self.known_value(place, keyword, value));
            } else if keyword == "oneOf" && !keywords.contains_key("anyOf") {
                known.insert(String::from("anyOf"), self.known_value(place, keyword, value));
            }
        }
        if refers_alone && let Some(to) = known.remove("$ref") {
            known.insert(String::from("allOf"), json!([{ "$ref": to }]));
        }
        Value::Object(known)
    }

    /// Checks whether another program may not write a keyword.
    fn leaves_out(&self, place: Place<'a>, keyword: &str, value: &Value) -> bool {
        let Some(foreign) = &self.foreign else { return false };
        let text = value.as_str();
        match keyword {
            "$schema" if self.document.is_whole(place) => {
                text.is_some_and(|draft| !draft.contains("//json-schema.org/"))
            }
            "$ref" => text.is_some_and(|to| {
                let target = self.document.target_by_place(place, to);
                !target.is_some_and(|target| foreign.places.contains(&ptr::from_ref(target)))
            }),
            name => NAMES.contains(&name) && value.is_string() || LEFT_OUT.contains(&name),
        }
    }

    fn known_value(&self, place: Place<'a>, keyword: &str, value: &'a Value) -> Value {
        let known = |schema: &'a Value| self.known(place.at(schema));
        match (Kind::of(keyword), value) {
            (Kind::Map, Value::Object(schemas)) => {
                schemas.iter().map(|(name, schema)| (name.clone(), known(schema))).collect()
            }
            (Kind::Other, Value::Array(schemas)) => schemas.iter().map(known).collect(),
            (Kind::Other, Value::Object(_)) => known(value),
            _ => value.clone(),
        }
    }

    /// Checks whether something is left out of the schemas of a keyword, or of those that they lead to.
    fn loses(&self, place: Place<'a>, keyword: &str) -> bool {
        let schemas = place.node.get(keyword).map(|value| schemas_within(keyword, value)).unwrap_or_default();
        let mut waiting: Vec<_> = schemas.into_iter().map(|schema| place.at(schema)).collect();
        let mut seen = HashSet::new();
        while let Some(place) = waiting.pop() {
            if !seen.insert(ptr::from_ref(place.node)) {
                continue;
            }
            if expressions_of(place.node).any(|expression| self.unknown.contains(expression)) {
                return true;
            }
            for (keyword, value) in place.node.as_object().into_iter().flatten() {
                let is_name = NAMES.contains(&keyword.as_str());
                if UNEVALUATED.contains(&keyword.as_str())
                    || (!is_name && self.leaves_out(place, keyword, value))
                {
                    return true;
                }
                waiting.extend(schemas_within(keyword, value).into_iter().map(|schema| place.at(schema)));
                if let (Kind::Reference, Some(to)) = (Kind::of(keyword), value.as_str()) {
                    waiting.extend(self.document.targets(place, keyword, to));
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(schema: &Value, value: &Value) -> Option<bool> {
        Compiled::new(schema, false).ok()?.is_valid(value, 1 << 20)
    }

    #[test]
    fn patterns_of_the_linear_engine_are_checked() {
        let schema = json!({"properties": {"day": {"pattern": "^\\d{4}-\\d{2}$"}}, "patternProperties": {"^x-": {"type": "string"}}});
        assert_eq!(accepts(&schema, &json!({"day": "2026-01"})), Some(true));
        assert_eq!(accepts(&schema, &json!({"day": "today"})), Some(false));
        assert_eq!(accepts(&schema, &json!({"x-a": 1})), Some(false));
    }

    #[test]
    fn law_r1_other_patterns_are_left_to_the_tool() {
        let of = |pattern: &str| json!({"properties": {"a": {"type": "string", "pattern": pattern}}});
        for pattern in ["^(?!\\.)(?!.*\\.\\.)\\S+@\\S+$", "^(a+)+\\1$"] {
            assert_eq!(accepts(&of(pattern), &json!({"a": "a".repeat(40) + "!"})), Some(true), "{pattern}");
            assert_eq!(accepts(&of(pattern), &json!({"a": 1})), Some(false), "the rest is checked");
        }
        let names =
            json!({"patternProperties": {"^(?!_)": {"type": "string"}}, "additionalProperties": false});
        assert_eq!(accepts(&names, &json!({"a": "b"})), Some(true));
        assert_eq!(
            accepts(&json!({"properties": {"a": {"pattern": "(a"}}, "type": "nothing"}), &json!(1)),
            None
        );
        for large in ["^.{1,255}$", "^[^<>]{1,2000}$"] {
            assert_eq!(accepts(&of(large), &json!({"a": ""})), Some(true), "{large}");
        }
        for invalid in ["(?<!a", "(a", "\\p{L}{1000}"] {
            assert_eq!(accepts(&of(invalid), &json!({"a": 1})), None, "{invalid}");
        }
        let data = json!({"const": {"pattern": "(?=a)", "patternProperties": {"b": 1}}});
        assert_eq!(accepts(&data, &data["const"]), Some(true));
    }

    /// The patterns look like those of Zod.
    #[test]
    fn schemas_with_other_patterns_refuse_nothing_that_they_allow() {
        let mail = json!({"type": "string", "pattern": "^(?!\\.)\\S+@\\S+$"});
        let one = json!({"oneOf": [{"type": "integer"}, {"type": "null"}]});
        let with = |more: Value| {
            let mut schema = json!({"type": "object", "$defs": {"mail": mail}, "properties": {"mail": mail}});
            schema["properties"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            schema
        };
        let fitting = json!({"mail": "a@b.c"});
        for (what, schema, allowed, refused) in [
            ("beside `oneOf`", with(json!({"number": one})), json!({"number": 1}), json!({"number": "1"})),
            (
                "properties with names of keywords",
                with(
                    json!({"not": {"type": "string"}, "if": {"type": "string"}, "pattern": {"type": "string"}}),
                ),
                json!({"not": "a", "if": "b", "pattern": "c"}),
                json!({"not": 1}),
            ),
            (
                "in `oneOf`",
                with(json!({"to": {"oneOf": [mail, {"type": "string", "maxLength": 9}]}})),
                json!({"to": "nobody"}),
                json!({"to": 1}),
            ),
            (
                "a reference in `oneOf`",
                with(
                    json!({"to": {"oneOf": [{"$ref": "#/$defs/mail"}, {"type": "string", "maxLength": 9}]}}),
                ),
                json!({"to": "nobody"}),
                json!({"to": 1}),
            ),
            (
                "in `not`",
                with(json!({"name": {"type": "string", "not": mail}})),
                json!({"name": "b"}),
                json!({"name": 1}),
            ),
            (
                "in `if`",
                with(json!({"name": {"type": "string", "if": {"$ref": "#/$defs/mail"}, "then": false}})),
                json!({"name": "b"}),
                json!({"name": 1}),
            ),
            (
                "in `contains`",
                with(json!({"to": {"type": "array", "contains": mail, "minContains": 0, "maxContains": 1}})),
                json!({"to": ["b", "c"]}),
                json!({"to": 1}),
            ),
            (
                "names in `allOf`",
                json!({
                    "type": "object", "unevaluatedProperties": false,
                    "allOf": [{"patternProperties": {"^(?!_)": {"type": "string"}}}]
                }),
                json!({"a": "b"}),
                json!(1),
            ),
        ] {
            assert_eq!(accepts(&schema, &fitting), Some(true), "{what}");
            assert_eq!(accepts(&schema, &allowed), Some(true), "{what}");
            assert_eq!(accepts(&schema, &refused), Some(false), "{what}: the rest is checked");
        }
    }

    #[test]
    fn law_r1_patterns_of_other_programs_have_a_number() {
        let schema = |number: usize| {
            let named: Map<_, _> =
                (1..number).map(|at| (format!("^{at}"), json!({"pattern": "^1"}))).collect();
            json!({"properties": {"a": {"pattern": "a"}}, "patternProperties": named, "const": {"pattern": "b"}})
        };
        let compiles = |number, is_foreign| Compiled::new(&schema(number), is_foreign).is_ok();
        assert!(compiles(MOST_FOREIGN, true) && compiles(MOST_FOREIGN + 1, false));
        assert!(!compiles(MOST_FOREIGN + 1, true));
        let large = |number: usize| -> Value {
            let of = (0..number).map(|at| json!({"pattern": format!("^.{{1,{}}}$", at + 300)}));
            json!({"anyOf": of.collect::<Vec<_>>()})
        };
        let compiles = |number, is_foreign| Compiled::new(&large(number), is_foreign).is_ok();
        assert!(compiles(MOST_LARGE, true) && compiles(MOST_LARGE + 1, true), "the rest is left out");
    }

    fn compiled(schema: &Value) -> Compiled {
        Compiled::new(schema, true).unwrap()
    }

    /// The least work that is enough for a comparison with arguments.
    fn work(schema: &Value, arguments: &Value) -> usize {
        let compiled = compiled(schema);
        let (mut few, mut enough) = (0, 1_usize << 30);
        while few < enough {
            let middle = few.midpoint(enough);
            match compiled.is_valid(arguments, middle) {
                Some(_) => enough = middle,
                None => few = middle + 1,
            }
        }
        enough
    }

    #[test]
    fn work_is_that_of_the_texts_and_their_patterns() {
        let schema = |pattern: &str| json!({"properties": {"a": {"pattern": pattern}, "b": {}}});
        let added = |schema: &Value, name: &str| {
            let of = |bytes: usize| work(schema, &json!({name: "a".repeat(bytes)}));
            (of(6400) - of(0)) / 6400
        };
        assert_eq!(added(&schema("^[ab]+$"), "a"), 1);
        assert_eq!(added(&schema("^[ab]+$"), "b"), 0, "it has no pattern");
        assert!(added(&schema("[ab]*a[ab]{400}"), "a") > 1, "a larger pattern");
        let names = json!({"patternProperties": {"^[ab]+$": {}, "^[bc]+$": {}}});
        let of = |bytes: usize| work(&names, &json!({"a".repeat(bytes): 1}));
        assert!((of(6400) - of(0)) / 6400 >= 2);
        let names = json!({"propertyNames": {"pattern": "^[ab]+$"}});
        let of = |bytes: usize| work(&names, &json!({"a".repeat(bytes): 1}));
        assert!((of(6400) - of(0)) / 6400 >= 1);
    }

    /// A tree of elements of several kinds, as a derived schema has it: in one schema, or in one for each kind.
    #[test]
    fn large_arguments_of_recursive_schemas_are_compared() {
        for (kinds, levels, is_apart) in [(12, 10, false), (30, 8, false), (12, 10, true), (30, 8, true)] {
            let child = json!({"$ref": "#/$defs/node"});
            let kind = |at: u32| {
                let children = json!({"type": "array", "items": child});
                json!({"properties": {"kind": {"const": at}, "children": children}, "required": ["kind", "children"]})
            };
            let leaf = json!({"properties": {"kind": {"const": "text"}}, "required": ["kind", "text"]});
            let mut defs: Map<_, _> = (0..kinds).map(|at| (format!("k{at}"), kind(at))).collect();
            defs.insert(String::from("leaf"), leaf);
            let each = defs.iter().map(|(name, kind)| match is_apart {
                true => json!({"$ref": format!("#/$defs/{name}")}),
                false => kind.clone(),
            });
            let node = json!({"oneOf": each.collect::<Vec<_>>()});
            if !is_apart {
                defs.clear();
            }
            defs.insert(String::from("node"), node);
            let schema = json!({"$defs": defs, "$ref": "#/$defs/node"});
            let tree = |leaf: Value| {
                (0..levels).fold(
                    leaf,
                    |inner, level| json!({"kind": level % kinds, "children": [inner.clone(), inner]}),
                )
            };
            let compiled = compiled(&schema);
            let fits = |leaf| compiled.is_valid(&tree(leaf), 4 << 20);
            assert_eq!(fits(json!({"kind": "text", "text": "a"})), Some(true), "{kinds} {is_apart}");
            assert_eq!(fits(json!({"kind": "text"})), Some(false), "{kinds} {is_apart}");
        }
    }

    /// A definition of each place that leads to the next one, in several ways. The last one is `end`.
    fn chain(places: usize, ways: usize, way: impl Fn(String) -> Value, end: Value) -> Value {
        let to = |at: usize| format!("#/$defs/{at}");
        let defs = (0..places).map(|at| (at.to_string(), json!({"allOf": vec![way(to(at + 1)); ways]})));
        let defs: Map<_, _> = defs.chain([(places.to_string(), end)]).collect();
        json!({"$defs": defs, "$ref": "#/$defs/0"})
    }

    /// 40 places, each of which leads to the next one in two ways.
    fn doubled() -> Value {
        chain(40, 2, |to| json!({"$ref": to}), json!({}))
    }

    fn doubled_in(draft: &str) -> Value {
        let mut schema = doubled();
        schema["$schema"] = json!(draft);
        schema
    }

    /// Whatever a schema leads to, also where it does not look at the value.
    #[test]
    fn law_r1_each_check_of_one_value_counts() {
        let elsewhere = |place: &str| -> Value {
            let text = doubled().to_string().replace("#/$defs", &format!("#/{place}/$defs"));
            serde_json::from_str(&text).unwrap()
        };
        let circles = |at: usize| {
            let ways = |to: usize| vec![json!({"$ref": format!("#/$defs/a{to}")}); 30];
            let both = [ways(at), ways((at + 1) % 9)].concat();
            (format!("a{at}"), json!({ "allOf": both }))
        };
        let circles: Map<_, _> = (0..9).map(circles).collect();
        let older = doubled_in("http://json-schema.org/draft-07/schema#");
        let mut unevaluated = doubled();
        unevaluated["unevaluatedProperties"] = json!(false);
        let names: Map<_, _> = (0..20_000).map(|at| (at.to_string(), json!([]))).collect();
        for (what, schema, arguments) in [
            ("each way", doubled(), json!({})),
            ("each way to a text", doubled(), json!("a")),
            (
                "with the name of a keyword",
                json!({"dependentSchemas": {"const": elsewhere("dependentSchemas/const")}}),
                json!({"const": 1}),
            ),
            ("in circles", json!({"$defs": circles, "$ref": "#/$defs/a0"}), json!("a")),
            ("of names", json!({"items": {"dependentRequired": names}}), json!(vec![json!({}); 1_000])),
            ("in an older draft", older, json!("a")),
            ("beside what is left out", unevaluated, json!("a")),
        ] {
            let compiled = compiled(&schema);
            assert_eq!(compiled.is_valid(&arguments, 1 << 20), None, "{what}");
            assert_eq!(compiled.violations(&arguments, 1 << 20, |found| found.len()), None, "{what}");
        }
    }

    /// An address of a schema, a draft of its own, or a reference to what is no schema would not be counted, or compiled once
    /// for each way there.
    #[test]
    fn law_r1_a_schema_of_another_program_is_one_document() {
        let at = |host: char| {
            let to = |level: u32| {
                ['a', 'b', 'c'].map(|to| json!({"$ref": format!("http://x/{to}#/$defs/n{}", level + 1)}))
            };
            let defs = (0..30).map(|level| (format!("n{level}"), json!({"allOf": to(level)})));
            let defs: Map<_, _> = defs.chain([("n30".into(), json!({"type": "string"}))]).collect();
            json!({"$id": format!("http://x/{host}"), "$defs": defs})
        };
        let three = ['a', 'b', 'c'].map(at);
        let many = (0..7_000).map(|at| {
            let next = format!("#/definitions/{}", at + 1);
            (at.to_string(), json!({ "$ref": next }))
        });
        let older = json!({
            "$id": "http://x/d", "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": many.collect::<Map<_, _>>()
        });
        let ways = vec![json!({"$ref": "http://x/d#/definitions/0"}); 50];
        let nested = doubled_in("http://json-schema.org/draft-07/schema#");
        for (what, schema) in [
            ("three addresses", json!({"allOf": three})),
            ("an older draft", json!({"$defs": {"d": older}, "items": {"allOf": ways}})),
            ("an older draft in a newer one", json!({"properties": {"a": nested}})),
            ("data", json!({"properties": {"a": {"$ref": "#/default/s"}}, "default": {"s": {"items": {}}}})),
            (
                "data by another way",
                json!({"items": {"$ref": "json-schema:///#/default/a"}, "default": {"a": {}}}),
            ),
            ("a vocabulary", json!({"$id": "http://x/m", "$schema": "http://x/m", "$vocabulary": {}})),
            ("an anchor", json!({"$defs": {"a": {"$anchor": "a"}}, "items": {"$ref": "#a"}})),
            ("a meta-schema", json!({"items": {"$ref": "https://json-schema.org/draft/2020-12/schema"}})),
            ("itself", json!({"$id": "http://x/", "items": {"$recursiveRef": "#"}})),
        ] {
            let compiled = compiled(&schema);
            assert_eq!(compiled.is_valid(&json!([{"type": 1}]), 1 << 20), Some(true), "{what}");
        }
    }

    /// As programs write them.
    #[test]
    fn references_and_names_of_usual_schemas_are_read() {
        const DRAFT_07: &str = "http://json-schema.org/draft-07/schema#";
        let text = json!({"type": "string"});
        let named = |name: &str| -> Map<_, _> {
            let one = |at: u32| (format!("p{at}"), json!({name: format!("p{at}"), "type": "string"}));
            (0..20).map(one).collect()
        };
        for (what, schema, refused) in [
            (
                "a definition as the whole",
                json!({"$schema": DRAFT_07, "$ref": "#/definitions/A", "definitions": {"A": text}}),
                json!(1),
            ),
            (
                "in a group of components",
                json!({"$schema": DRAFT_07, "$ref": "#/components/schemas/A", "components": {"schemas": {"A": text}}}),
                json!(1),
            ),
            ("an escaped name", json!({"$ref": "#/$defs/A%3CB%3E", "$defs": {"A<B>": text}}), json!(1)),
            (
                "beside others, which a new draft checks",
                json!({"$ref": "#/$defs/A", "maxLength": 1, "$defs": {"A": text}}),
                json!("ab"),
            ),
            ("addresses", json!({"properties": named("$id")}), json!({"p0": 1})),
            ("names", json!({"properties": named("id")}), json!({"p0": 1})),
            (
                "notes with references",
                json!({"type": "string", "default": {"$ref": "#"}, "x-ui": {"$vocabulary": {}, "id": "a"}}),
                json!(1),
            ),
        ] {
            for is_foreign in [true, false] {
                let compiled = Compiled::new(&schema, is_foreign);
                let compiled = compiled.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(compiled.is_valid(&refused, 1 << 20), Some(false), "{what} {is_foreign}");
            }
        }
        let beside = json!({"$schema": DRAFT_07, "$ref": "#/definitions/A", "maxLength": 1, "definitions": {"A": text}});
        for is_foreign in [true, false] {
            let compiled = Compiled::new(&beside, is_foreign).unwrap();
            assert_eq!(compiled.is_valid(&json!("ab"), 1 << 20), Some(true), "an older draft ignores it");
        }
        // Of an application.
        for (schema, refused) in [
            (
                json!({"$schema": DRAFT_07, "properties": {
                    "a": {"$ref": "#/definitions/A", "properties": {"z": text}},
                    "b": {"$ref": "#/properties/a/properties/z"}
                }, "definitions": {"A": {}}}),
                json!({"b": 1}),
            ),
            (
                json!({"$schema": DRAFT_07, "properties": {"a": {"$id": "A", "$ref": "#/definitions/A"}}, "definitions": {"A": text}}),
                json!({"a": 1}),
            ),
            (
                json!({"$schema": DRAFT_07, "properties": {"a": {
                    "$id": "http://x/a", "$schema": "https://json-schema.org/draft/2020-12/schema",
                    "$ref": "#/$defs/A", "maxLength": 2, "$defs": {"A": text}
                }}}),
                json!({"a": "abc"}),
            ),
            (
                json!({"components": {"schemas": {"properties": {"properties": {"a": text}}}}, "$ref": "#/components/schemas/properties"}),
                json!({"a": 1}),
            ),
        ] {
            let compiled = Compiled::new(&schema, false).unwrap_or_else(|error| panic!("{schema}: {error}"));
            assert_eq!(compiled.is_valid(&refused, 1 << 20), Some(false), "{schema}");
        }
    }

    #[test]
    fn law_r1_a_comparison_comes_to_an_end() {
        let nested = |levels: usize| (0..levels).fold(json!("a"), |inner, _| json!({"a": inner}));
        let same = |to: String| json!({"$ref": to});
        let below = |to: String| json!({"properties": {"a": {"$ref": to}}});
        let items = |to: String| json!({"items": {"$ref": to}});
        let pattern = json!({"pattern": "^(?:[ab]*a[ab]{1000}|[ab]*)$"});
        let texts: Vec<_> = (0..2_000).map(|at| at.to_string()).collect();
        let lists = (0..20).fold(json!(texts), |inner, _| json!([inner]));
        for (what, schema, arguments) in [
            ("each way down", chain(40, 2, below, json!({"type": "string"})), nested(40)),
            ("each way to items", chain(21, 2, items, json!({"type": "string"})), lists),
            ("each way to a pattern", chain(1, 900, same, pattern), json!("ab".repeat(2000))),
        ] {
            let compiled = compiled(&schema);
            assert_eq!(compiled.is_valid(&arguments, 1 << 20), None, "{what}");
            assert_eq!(compiled.violations(&arguments, 1 << 20, |found| found.len()), None, "{what}");
        }
        assert_eq!(compiled(&json!({"$ref": "#"})).is_valid(&json!(1), 1 << 20), Some(true));
    }

    /// A schema that leads to itself fails in each of its ways, and each violation has those within.
    #[test]
    fn law_r1_violations_are_bounded_with_those_within() {
        let leaf = json!({"type": "string"});
        let items = |to: String| json!({"anyOf": [{"items": {"$ref": to}}]});
        let numbers: Vec<_> = (0..2_300).collect();
        let lists = (0..9).fold(json!(numbers), |inner, _| json!([inner]));
        let compiled = compiled(&chain(10, 2, items, leaf));
        assert_eq!(compiled.is_valid(&lists, 1 << 20), Some(false));
        assert_eq!(compiled.violations(&lists, 1 << 20, |found| found.len()), None);
    }

    /// The test runs in a thread with the stack of one that checks arguments.
    #[test]
    fn law_r1_a_deep_comparison_does_not_overflow_the_stack() {
        let check = || {
            let inner = (0..100).fold(json!({"$ref": "#"}), |inner, _| json!({"allOf": [inner]}));
            let schema = json!({"properties": {"a": inner}});
            let nested = (0..120).fold(json!("a"), |inner, _| json!({"a": inner}));
            let compiled = compiled(&schema);
            compiled.is_valid(&nested, 1 << 20);
            compiled.violations(&nested, 1 << 20, |found| found.len())
        };
        let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(check).unwrap();
        assert_eq!(thread.join().unwrap(), None);
    }
}

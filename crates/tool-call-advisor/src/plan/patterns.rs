//! Regular expressions in schemas, which may be those of a server: only an engine of linear time checks them.

use std::collections::HashSet;
use std::ptr;

use jsonschema::{PatternOptions, ValidationOptions, Validator};
use serde_json::{Map, Value, json};

use crate::plan::subschemas::{Document, Kind, Place, visit, within};
use crate::plan::work::{self, Purpose, Sizes};

/// The bytes that a compiled expression may have.
const MOST_BYTES: usize = 256 << 10;

/// The bytes that a compiled expression may have that is left out.
const MOST_UNUSED_BYTES: usize = 8 << 20;

/// The bytes of a compiled expression of the size 1.
const UNIT_BYTES: usize = MOST_BYTES / Sizes::LARGEST;

/// The expressions of a schema that another program wrote, and the large ones of these. Each is compiled.
const MOST_FOREIGN: usize = 100;
const MOST_LARGE: usize = 10;

/// A compiled schema.
pub(super) struct Compiled {
    /// The schema without the expressions that the engine does not know.
    known: Value,
    pub(super) validator: Validator,
    sizes: Sizes,
}

impl Compiled {
    /// Compiles a schema. Expressions that need another engine, such as those with look-ahead, and large ones, such as
    /// `^.{1,500}$`, are left out with what depends on them: the tool itself has to check them. So the schema accepts more,
    /// and nothing less.
    ///
    /// # Errors
    /// If the schema or an expression is invalid, or another program wrote it and it has too many of them.
    pub(super) fn new(schema: &Value, is_foreign: bool) -> Result<Self, String> {
        let mut expressions = HashSet::new();
        visit(schema, &mut |schema| expressions.extend(expressions_of(schema)));
        if is_foreign && expressions.len() > MOST_FOREIGN {
            return Err(format!("it has more than {MOST_FOREIGN} regular expressions"));
        }
        let (mut sizes, mut unknown, mut large) = (Sizes::default(), HashSet::new(), 0_usize);
        for expression in expressions {
            if let Some(size) = size(expression) {
                sizes.insert(expression, size);
            } else if is_valid(expression, MOST_BYTES) {
                unknown.insert(expression);
            } else {
                large += 1;
                if is_foreign && large > MOST_LARGE {
                    return Err(format!("it has more than {MOST_LARGE} large regular expressions"));
                }
                // The error of the whole schema says where an invalid one is.
                unknown.extend(is_valid(expression, MOST_UNUSED_BYTES).then_some(expression));
            }
        }
        let known = match unknown.is_empty() {
            true => schema.clone(),
            false => LeavingOut { unknown, document: Document::new(schema) }.known(Place::of_whole(schema)),
        };
        let validator = options(MOST_BYTES).build(&known).map_err(|error| error.to_string())?;
        Ok(Self { known, validator, sizes })
    }

    /// Returns the work of a comparison with arguments, or `None` if it is more than `most`.
    pub(super) fn work(&self, arguments: &Value, purpose: Purpose, most: usize) -> Option<usize> {
        work::of(&self.known, &self.sizes, arguments, purpose, most)
    }
}

/// Returns the expressions of a schema, without those within.
fn expressions_of(schema: &Value) -> impl Iterator<Item = &str> {
    let names = schema.get("patternProperties").and_then(Value::as_object);
    let names = names.into_iter().flat_map(Map::keys).map(String::as_str);
    schema.get("pattern").and_then(Value::as_str).into_iter().chain(names)
}

fn options(most_bytes: usize) -> ValidationOptions<'static> {
    let linear = PatternOptions::regex().size_limit(most_bytes).dfa_size_limit(MOST_BYTES);
    jsonschema::options().with_pattern_options(linear)
}

/// Returns the size of an expression, if the engine knows it and it is not too large.
fn size(expression: &str) -> Option<usize> {
    let schema = json!({ "pattern": expression });
    [1, 4, 16, Sizes::LARGEST].into_iter().find(|size| options(size * UNIT_BYTES).build(&schema).is_ok())
}

/// Checks whether an expression of at most so many bytes is valid for any engine. It is compiled for that, and never run.
fn is_valid(expression: &str, most_bytes: usize) -> bool {
    let other = PatternOptions::fancy_regex().size_limit(most_bytes).dfa_size_limit(MOST_BYTES);
    jsonschema::options().with_pattern_options(other).build(&json!({ "pattern": expression })).is_ok()
}

/// Leaves expressions out of a schema.
struct LeavingOut<'a> {
    unknown: HashSet<&'a str>,
    document: Document<'a>,
}

impl<'a> LeavingOut<'a> {
    /// Returns the schema without the expressions, and without the keywords that would refuse more without them.
    fn known(&self, place: Place<'a>) -> Value {
        let Value::Object(keywords) = place.node else { return place.node.clone() };
        let is_known = |expression: &str| !self.unknown.contains(expression);
        let names = keywords.get("patternProperties").and_then(Value::as_object);
        let has_known_names = names.is_none_or(|names| names.keys().all(|name| is_known(name)));
        let mut known = Map::new();
        for (keyword, value) in keywords {
            let is_kept = match keyword.as_str() {
                "pattern" => value.as_str().is_none_or(is_known),
                "patternProperties" | "additionalProperties" => has_known_names,
                // What is left out may have evaluated the rest.
                "unevaluatedProperties" | "unevaluatedItems" => false,
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
        Value::Object(known)
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
        let schemas = place.node.get(keyword).map(|value| within(keyword, value)).unwrap_or_default();
        let mut waiting: Vec<_> = schemas.into_iter().map(|schema| place.at(schema)).collect();
        let mut seen = HashSet::new();
        while let Some(place) = waiting.pop() {
            if !seen.insert(ptr::from_ref(place.node)) {
                continue;
            }
            let has = |keyword| place.node.get(keyword).is_some();
            if expressions_of(place.node).any(|expression| self.unknown.contains(expression))
                || has("unevaluatedProperties")
                || has("unevaluatedItems")
            {
                return true;
            }
            for (keyword, value) in place.node.as_object().into_iter().flatten() {
                waiting.extend(within(keyword, value).into_iter().map(|schema| place.at(schema)));
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
        Compiled::new(schema, false).ok().map(|compiled| compiled.validator.is_valid(value))
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
        assert!(compiles(MOST_LARGE, true) && compiles(MOST_LARGE + 1, false));
        assert!(!compiles(MOST_LARGE + 1, true));
    }

    /// The work of a comparison with arguments.
    fn work(schema: &Value, arguments: &Value) -> Option<usize> {
        Compiled::new(schema, false).unwrap().work(arguments, Purpose::Fit, 1 << 20)
    }

    /// The work of a list of what does not fit.
    fn work_of_list(schema: &Value, arguments: &Value) -> Option<usize> {
        Compiled::new(schema, false).unwrap().work(arguments, Purpose::List, 1 << 20)
    }

    #[test]
    fn work_is_that_of_the_texts_and_their_patterns() {
        let schema = |pattern: &str| json!({"properties": {"a": {"pattern": pattern}, "b": {}}});
        let added = |schema: &Value, name: &str| {
            let of = |bytes: usize| work(schema, &json!({name: "a".repeat(bytes)})).unwrap();
            (of(6400) - of(0)) / 6400
        };
        assert_eq!(added(&schema("^[ab]+$"), "a"), 1);
        assert_eq!(added(&schema("^[ab]+$"), "b"), 0, "it has no pattern");
        assert!(added(&schema("[ab]*a[ab]{100}"), "a") > 1, "a larger pattern");
        let names = json!({"patternProperties": {"^[ab]+$": {}, "^[bc]+$": {}}});
        let of = |bytes: usize| work(&names, &json!({"a".repeat(bytes): 1})).unwrap();
        assert_eq!((of(6400) - of(0)) / 6400, 2);
        let names = json!({"propertyNames": {"pattern": "^[ab]+$"}});
        let of = |bytes: usize| work(&names, &json!({"a".repeat(bytes): 1})).unwrap();
        assert_eq!((of(6400) - of(0)) / 6400, 1);
    }

    /// A tree of elements, as a derived schema has it of an enum with a tag.
    #[test]
    fn arguments_of_a_recursive_schema_have_little_work() {
        let mut kinds =
            vec![json!({"properties": {"kind": {"const": "text"}}, "required": ["kind", "text"]})];
        kinds.extend((0..12).map(|at| {
            let children = json!({"type": "array", "items": {"$ref": "#/$defs/node"}});
            json!({"properties": {"kind": {"const": at}, "children": children}, "required": ["kind", "children"]})
        }));
        let schema = json!({"$defs": {"node": {"oneOf": kinds}}, "$ref": "#/$defs/node"});
        let tree = |levels: u32| {
            (0..levels).fold(
                json!({"kind": "text", "text": "a"}),
                |inner, level| json!({"kind": level % 12, "children": [inner.clone(), inner]}),
            )
        };
        for levels in [3, 6, 10] {
            assert!(Compiled::new(&schema, true).unwrap().validator.is_valid(&tree(levels)), "{levels}");
            let work = Compiled::new(&schema, true).unwrap().work(&tree(levels), Purpose::Fit, usize::MAX);
            assert!(work.is_some_and(|work| work < 60_000 * 2_usize.pow(levels)), "{levels}: {work:?}");
        }
        assert_eq!(work_of_list(&schema, &tree(10)), None, "each level has thirteen ways to fail");
    }

    /// The validator does not remember what it finds out at once.
    #[test]
    fn law_r1_each_way_to_a_little_value_counts() {
        let way = json!({"properties": {"a": {"items": {"$ref": "#/$defs/n"}}}});
        let schema =
            |ways: usize| json!({"$defs": {"n": {"allOf": vec![way.clone(); ways]}}, "$ref": "#/$defs/n"});
        let arguments = json!({"a": vec![json!({}); 80]});
        let of =
            |ways| Compiled::new(&schema(ways), true).unwrap().work(&arguments, Purpose::Fit, usize::MAX);
        let (few, many) = (of(30).unwrap(), of(300).unwrap());
        assert!(few > 80 * 30 * 30 && many > 80 * 300 * 300, "{few} {many}");
    }

    #[test]
    fn law_r1_each_way_to_a_pattern_counts() {
        let expression = "^(?:[ab]*a[ab]{1000}|[ab]*)$";
        let schema = |number: usize| {
            let each: Vec<_> = (0..number).map(|_| json!({"$ref": "#/$defs/p"})).collect();
            json!({"$defs": {"p": {"pattern": expression}}, "properties": {"a": {"allOf": each}}})
        };
        let arguments = json!({"a": "ab".repeat(2000)});
        let one =
            Compiled::new(&schema(1), true).unwrap().work(&arguments, Purpose::Fit, usize::MAX).unwrap();
        let many =
            Compiled::new(&schema(4900), true).unwrap().work(&arguments, Purpose::Fit, usize::MAX).unwrap();
        assert!(many / one > 4800, "{one} {many}");
        assert_eq!(work(&schema(4900), &arguments), None);
    }

    #[test]
    fn law_r1_work_without_a_bound_is_recognised() {
        let nested = |levels: usize| (0..levels).fold(json!("a"), |inner, _| json!({"a": inner}));
        let twice = json!({"allOf": [
            {"properties": {"a": {"$ref": "#/$defs/n"}}}, {"properties": {"a": {"$ref": "#/$defs/n"}}}
        ]});
        let doubled = json!({"$defs": {"n": twice}, "$ref": "#/$defs/n"});
        assert!(work_of_list(&doubled, &nested(5)).unwrap() > 1 << 5);
        assert_eq!(work_of_list(&doubled, &nested(60)), None, "doubled at each level");
        assert!(work(&doubled, &nested(60)).is_some_and(|work| work < 20_000), "remembered");
        let anchored = json!({"$defs": {"n": {"$anchor": "n", "allOf": [
            {"properties": {"a": {"$ref": "#n"}}}, {"properties": {"a": {"$ref": "#n"}}}
        ]}}, "$ref": "#n"});
        assert_eq!(work_of_list(&anchored, &nested(60)), None, "by the name of a schema");
        let chain = (0..30).map(|at| {
            (
                at.to_string(),
                json!({"allOf": [
                    {"$ref": format!("#/$defs/{}", at + 1)}, {"$ref": format!("#/$defs/{}", at + 1)}
                ]}),
            )
        });
        let chain: Map<_, _> = chain.chain([(String::from("30"), json!({"type": "object"}))]).collect();
        assert_eq!(
            work(&json!({"$defs": chain, "$ref": "#/$defs/0"}), &json!({})),
            None,
            "none leads to itself"
        );
        assert_eq!(work(&json!({"$ref": "#"}), &json!(1)), None, "no end");
        let several = (1..6).map(|at| {
            (format!("{at}"), json!({"allOf": vec![json!({"$ref": format!("#/$defs/{}", at + 1)}); 60]}))
        });
        let mut several: Map<_, _> = several.collect();
        several.insert(String::from("6"), json!({"properties": {"a": {"$ref": "#/$defs/1"}}}));
        assert_eq!(
            work(&json!({"$defs": several, "$ref": "#/$defs/1"}), &json!({"a": {}})),
            None,
            "of those that lead to one another, only one is remembered"
        );
        let unevaluated = (0..40).fold(
            json!({}),
            |inner, _| json!({"anyOf": [inner], "unevaluatedProperties": {"type": "string"}}),
        );
        assert_eq!(work(&unevaluated, &json!({"a": "b"})), None, "evaluated again at each level");
        let tree = json!({"$defs": {"n": {"properties": {
            "a": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/n"}]}}
        }}, "$ref": "#/$defs/n"});
        assert!(work(&tree, &nested(60)).is_some_and(|work| work < 10_000), "{:?}", work(&tree, &nested(60)));
        assert!(
            work(
                &json!({"additionalProperties": {"$ref": "#"}, "properties": {"a": {"$ref": "#"}}}),
                &nested(60)
            )
            .is_some()
        );
    }
}

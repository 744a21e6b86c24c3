//! Filters as conditions of statements.

use common_advisors::retrieval::{Condition, Filter};
use serde_json::Value;

use crate::rows::{json_without_nul, without_nul};
use crate::statement::Statement;

/// Binds the tenant and the conditions of a filter, and returns the condition of a `WHERE`. It begins with the tenant.
pub(crate) fn where_filter(filter: &Filter, statement: &mut Statement) -> String {
    let mut all = format!("tenant = {}", statement.bind_text(without_nul(&filter.tenant)));
    for condition in &filter.conditions {
        all += " AND ";
        all += &where_condition(condition, statement);
    }
    all
}

fn where_condition(condition: &Condition, statement: &mut Statement) -> String {
    let metadata = |statement: &mut Statement, name: &str| {
        format!("metadata -> {}", statement.bind_text(without_nul(name)))
    };
    match condition {
        Condition::Equal(name, value) => {
            let (found, value) = (metadata(statement, name), bind_json(statement, value));
            format!("{found} = {value}")
        }
        Condition::OneOf(name, values) => {
            let found = metadata(statement, name);
            let values = statement.bind_texts(values.iter().map(json_without_nul).collect());
            format!("{found} = ANY ({values}::jsonb[])")
        }
        // A missing value is null to the server, and other than any value.
        Condition::NotEqual(name, value) => {
            let (found, value) = (metadata(statement, name), bind_json(statement, value));
            format!("({found}) IS DISTINCT FROM {value}")
        }
        Condition::Ids(ids) => {
            let ids = statement.bind_texts(ids.iter().map(|id| without_nul(id)).collect());
            format!("id = ANY ({ids})")
        }
        // A condition that this version does not know selects nothing, also no document to delete.
        _ => "false".into(),
    }
}

fn bind_json(statement: &mut Statement, value: &Value) -> String {
    let value = statement.bind_text(json_without_nul(value));
    format!("{value}::jsonb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_statement_has_no_value() {
        let filter = Filter::in_tenant("acme'; --")
            .with_equal("a'b", "c'd")
            .with(Condition::OneOf("e".into(), vec!["f'".into()]))
            .with(Condition::NotEqual("g'".into(), 1.into()))
            .with(Condition::Ids(vec!["h'".into()]));
        let mut statement = Statement::default();
        assert_eq!(
            where_filter(&filter, &mut statement),
            "tenant = $1 AND metadata -> $2 = $3::jsonb AND metadata -> $4 = ANY ($5::jsonb[]) \
             AND (metadata -> $6) IS DISTINCT FROM $7::jsonb AND id = ANY ($8)"
        );
        assert_eq!(statement.parameters().len(), 8);
    }
}

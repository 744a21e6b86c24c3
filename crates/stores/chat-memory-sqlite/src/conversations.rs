//! `delete` and `list`: work on whole conversations.

use advisor_core::ConversationKey;
use conversation_store::{ListOrder, Page};
use rusqlite::{Connection, TransactionBehavior, params};

use crate::failure::{Result, commit, lasting};
use crate::log::Log;

/// Removes a conversation with its entries and keys, in one transaction. Its fencing token stays.
pub(crate) fn delete(connection: &mut Connection, key: &ConversationKey) -> Result {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(log) = Log::find_any(&transaction, key)? else { return Ok(()) };
    for statement in [
        "INSERT INTO fences (tenant, conversation, fence)
             SELECT tenant, conversation, fence FROM conversations WHERE id = ?1 AND fence IS NOT NULL
             ON CONFLICT (tenant, conversation) DO UPDATE SET fence = excluded.fence",
        "DELETE FROM batches WHERE conversation = ?1",
        "DELETE FROM forks WHERE conversation = ?1",
        "DELETE FROM entries WHERE conversation = ?1",
        "DELETE FROM conversations WHERE id = ?1",
    ] {
        transaction.execute(statement, [log.id])?;
    }
    commit(transaction)
}

/// Lists one page of a tenant's conversations, by a range of the index of names.
pub(crate) fn list(connection: &mut Connection, page: &Page) -> Result<Vec<ConversationKey>> {
    let Some(after) = page.start() else { return Ok(Vec::new()) };
    // Each statement is a range of the index. No id is empty, so all are above the empty one.
    let (beyond, order) = match page.order {
        ListOrder::Ascending => (">", ""),
        ListOrder::Descending if after.is_empty() => (">", "DESC"),
        ListOrder::Descending => ("<", "DESC"),
    };
    let sql = format!(
        "SELECT conversation FROM conversations WHERE tenant = ?1 AND conversation {beyond} ?2
             ORDER BY conversation {order} LIMIT ?3"
    );
    let tenant = page.tenant.as_str();
    let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![tenant, after, limit])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        let conversation: String = row.get(0)?;
        keys.push(ConversationKey::in_tenant(tenant, &conversation).map_err(lasting)?);
    }
    Ok(keys)
}

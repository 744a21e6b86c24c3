//! `Statements`: the text of every SQL statement that the store sends.

use crate::schema::Schema;

/// The statements of the store, with the schema's name filled in.
pub(crate) struct Statements {
    pub(crate) append: String,
    /// Reads a range of a branch.
    pub(crate) load: String,
    /// Reads a range of the log: its entries, then the forks in it, or one row without either.
    pub(crate) read: String,
    pub(crate) branches: String,
    pub(crate) delete: String,
    pub(crate) list: String,
    pub(crate) list_down: String,
    pub(crate) list_down_from: String,
    pub(crate) acquire: String,
    /// Sets the expiry of a lease, counted from now.
    pub(crate) hold: String,
}

const APPEND: &str = "SELECT is_written, at_version, at_fence, at_turn, known_first, known_last, known_turns, \
    known_bodies, known_parent \
    FROM {schema}.append_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";

const LOAD: &str = "SELECT version, open, turn_from, view_from, firsts, lasts, parents, seq, turn, body \
    FROM {schema}.load_branch($1, $2, $3, $4, $5)";

const READ: &str = "WITH log AS MATERIALIZED ( \
        SELECT c.id, c.version FROM {schema}.conversations AS c \
        WHERE c.tenant = $1 AND c.conversation = $2) \
    SELECT log.version, e.seq, e.turn, e.body, NULL::bigint AS first_seq, NULL::bigint AS parent \
    FROM log JOIN {schema}.entries AS e \
        ON e.conversation = log.id AND e.seq > $3::bigint AND e.seq <= $4::bigint \
    UNION ALL SELECT log.version, NULL, NULL, NULL, f.first_seq, f.parent \
    FROM log LEFT JOIN {schema}.forks AS f \
        ON f.conversation = log.id AND f.first_seq > $3::bigint AND f.first_seq <= $4::bigint \
    ORDER BY seq";

const BRANCHES: &str = "SELECT c.version, f.first_seq, f.parent \
    FROM {schema}.conversations AS c LEFT JOIN {schema}.forks AS f ON f.conversation = c.id \
    WHERE c.tenant = $1 AND c.conversation = $2";

const DELETE: &str = "SELECT {schema}.delete_conversation($1, $2)";

const LIST: &str = "SELECT conversation FROM {schema}.conversations \
    WHERE tenant = $1 AND conversation > $2 ORDER BY conversation LIMIT $3";

const LIST_DOWN: &str = "SELECT conversation FROM {schema}.conversations \
    WHERE tenant = $1 AND conversation > $2 ORDER BY conversation DESC LIMIT $3";

const LIST_DOWN_FROM: &str = "SELECT conversation FROM {schema}.conversations \
    WHERE tenant = $1 AND conversation < $2 ORDER BY conversation DESC LIMIT $3";

const ACQUIRE: &str = "SELECT outcome, at_fence, by_turn, remaining \
    FROM {schema}.acquire_lease($1, $2, $3, $4, $5, $6)";

const HOLD: &str = "UPDATE {schema}.leases \
    SET held_until = clock_timestamp() + $4::bigint * interval '1 microsecond' \
    WHERE tenant = $1 AND conversation = $2 AND fence = $3 RETURNING fence";

impl Statements {
    pub(crate) fn for_schema(schema: &Schema) -> Self {
        Self {
            append: schema.name_in(APPEND),
            load: schema.name_in(LOAD),
            read: schema.name_in(READ),
            branches: schema.name_in(BRANCHES),
            delete: schema.name_in(DELETE),
            list: schema.name_in(LIST),
            list_down: schema.name_in(LIST_DOWN),
            list_down_from: schema.name_in(LIST_DOWN_FROM),
            acquire: schema.name_in(ACQUIRE),
            hold: schema.name_in(HOLD),
        }
    }
}

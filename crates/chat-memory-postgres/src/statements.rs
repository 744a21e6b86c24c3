use crate::Schema;

/// What the store asks the server, with the schema's name in it.
pub(crate) struct Statements {
    pub(crate) append: String,
    /// From the entry that is so many from the end.
    pub(crate) load_entries: String,
    /// From the turn that is so many from the end.
    pub(crate) load_turns: String,
    pub(crate) delete: String,
    pub(crate) list: String,
    pub(crate) acquire: String,
    /// Holds for so long from now on.
    pub(crate) hold: String,
}

const APPEND: &str = "SELECT outcome, at_version, known_turns, known_bodies \
    FROM {schema}.append_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/// One statement sees one moment. The entries are a range of the primary key: from where the view begins,
/// or from where the open turn does, whichever is first; `least` passes over nulls. Where the view begins is
/// found once, not for each entry: hence `MATERIALIZED`.
const LOAD: &str = "WITH log AS MATERIALIZED ( \
        SELECT c.id, c.version, c.open, c.last_turn_from, {from} AS from_seq \
        FROM {schema}.conversations AS c WHERE c.tenant = $1 AND c.conversation = $2) \
    SELECT log.version, log.open, log.last_turn_from, log.from_seq, e.seq, e.turn, e.body \
    FROM log LEFT JOIN {schema}.entries AS e ON e.conversation = log.id \
        AND e.seq >= least(log.from_seq, CASE WHEN log.open THEN log.last_turn_from END) \
    ORDER BY e.seq";

const FROM_ENTRY: &str = "c.version - $3::bigint + 1";

const FROM_TURN: &str = "CASE WHEN $3::bigint = 0 THEN c.version + 1 WHEN $3 >= c.turns THEN 1 \
    ELSE (SELECT t.first_seq FROM {schema}.turns AS t \
        WHERE t.conversation = c.id AND t.number = c.turns - $3 + 1) END";

const DELETE: &str = "SELECT {schema}.delete_conversation($1, $2)";

const LIST: &str = "SELECT conversation FROM {schema}.conversations \
    WHERE tenant = $1 AND conversation > $2 ORDER BY conversation LIMIT $3";

const ACQUIRE: &str = "SELECT outcome, at_fence, by_turn, remaining \
    FROM {schema}.acquire_lease($1, $2, $3, $4, $5)";

const HOLD: &str = "UPDATE {schema}.leases \
    SET held_until = clock_timestamp() + $4::bigint * interval '1 microsecond' \
    WHERE tenant = $1 AND conversation = $2 AND fence = $3 RETURNING fence";

impl Statements {
    pub(crate) fn of(schema: &Schema) -> Self {
        Self {
            append: schema.name_in(APPEND),
            load_entries: schema.name_in(&LOAD.replace("{from}", FROM_ENTRY)),
            load_turns: schema.name_in(&LOAD.replace("{from}", FROM_TURN)),
            delete: schema.name_in(DELETE),
            list: schema.name_in(LIST),
            acquire: schema.name_in(ACQUIRE),
            hold: schema.name_in(HOLD),
        }
    }
}

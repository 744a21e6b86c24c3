-- Appends a batch, behind p_parent if it is not null, where it may be written: its key is new, it has entries, and
-- fence, version, the turn of the last entry and parent fit. Of a batch that is not written comes back what there
-- is, and the entries that stand under the key. What becomes of it is decided by the one that asked.
--
-- Column by column, an entry has its turn, its body, whether the turn is open after it (null if that is as it was
-- before the batch), and the place in the batch of the entry with which its turn begins, 1 also if the turn goes on.
-- For a known batch, known_parent is what its first entry follows, where that is not the entry before it.
--
-- What an append costs beside its entries is above all its statements, so nearly every one runs four.
CREATE FUNCTION {schema}.append_batch(
    p_tenant text, p_conversation text, p_expected bigint,
    p_turn text, p_round bigint, p_step bytea, p_fence bigint,
    p_turns text[], p_bodies text[], p_opens boolean[], p_begins bigint[], p_parent bigint,
    p_last_turn text,
    OUT is_written boolean, OUT at_version bigint, OUT at_fence bigint, OUT at_turn text,
    OUT known_first bigint, OUT known_last bigint, OUT known_turns text[], OUT known_bodies text[],
    OUT known_parent bigint
) LANGUAGE plpgsql AS $body$
DECLARE
    entries CONSTANT integer := cardinality(p_turns);
    log {schema}.conversations;
    written {schema}.batches;
    goes_on boolean;
BEGIN
    is_written := false;
    LOOP
        SELECT * INTO log FROM {schema}.conversations AS c
            WHERE c.tenant = p_tenant AND c.conversation = p_conversation FOR UPDATE;
        EXIT WHEN FOUND;
        PERFORM {schema}.lock_fences(p_tenant, p_conversation);
        at_version := 0;
        at_fence := (SELECT l.fence FROM {schema}.leases AS l
            WHERE l.tenant = p_tenant AND l.conversation = p_conversation FOR SHARE);
        IF p_fence < at_fence OR p_expected > 0 OR p_last_turn IS NOT NULL OR p_parent > 0 OR entries = 0 THEN
            RETURN;
        END IF;
        -- Another writer may have made it meanwhile.
        INSERT INTO {schema}.conversations (tenant, conversation, fence) VALUES (p_tenant, p_conversation, at_fence)
            ON CONFLICT DO NOTHING;
    END LOOP;
    at_version := log.version + entries;
    IF entries > 0 AND log.version = p_expected
        AND (p_fence < log.fence) IS NOT TRUE
        AND (p_last_turn IS NULL OR p_last_turn IS NOT DISTINCT FROM log.turn)
        AND (p_parent > log.version) IS NOT TRUE
    THEN
        INSERT INTO {schema}.batches VALUES (log.id, p_turn, p_round, p_step, log.version + 1, at_version)
            ON CONFLICT DO NOTHING;
        is_written := FOUND;
    END IF;
    IF NOT is_written THEN
        at_version := log.version;
        at_fence := log.fence;
        at_turn := log.turn;
        SELECT * INTO written FROM {schema}.batches AS b
            WHERE b.conversation = log.id AND b.turn = p_turn AND b.round = p_round AND b.step = p_step;
        IF FOUND THEN
            known_first := written.first_seq;
            known_last := written.last_seq;
            SELECT coalesce(array_agg(e.turn ORDER BY e.seq), '{}'), coalesce(array_agg(e.body ORDER BY e.seq), '{}')
                INTO known_turns, known_bodies FROM {schema}.entries AS e
                WHERE e.conversation = log.id AND e.seq BETWEEN written.first_seq AND written.last_seq;
            known_parent := (SELECT f.parent FROM {schema}.forks AS f
                WHERE f.conversation = log.id AND f.first_seq = written.first_seq);
        END IF;
        RETURN;
    END IF;

    IF p_parent < log.version THEN
        INSERT INTO {schema}.forks VALUES (log.id, log.version + 1, p_parent);
        SELECT p.turn, p.turn_from, p.open INTO log.turn, log.turn_from, log.open
            FROM {schema}.place_at(log.id, p_parent) AS p;
    END IF;
    goes_on := coalesce(p_turns[1] = log.turn, false);
    UPDATE {schema}.conversations AS c SET
        version = at_version,
        turn = p_turns[entries],
        turn_from = CASE WHEN goes_on AND p_begins[entries] = 1 THEN log.turn_from
            ELSE log.version + p_begins[entries] END,
        open = coalesce(p_opens[entries], log.open OR NOT goes_on),
        fence = coalesce(p_fence, log.fence)
        WHERE c.id = log.id;
    FOR n IN 1 .. entries LOOP
        INSERT INTO {schema}.entries (conversation, seq, turn_from, open, turn, body) VALUES (
            log.id, log.version + n,
            CASE WHEN goes_on AND p_begins[n] = 1 THEN log.turn_from ELSE log.version + p_begins[n] END,
            coalesce(p_opens[n], log.open OR NOT goes_on), p_turns[n], p_bodies[n]);
    END LOOP;
    IF p_fence > coalesce(log.fence, -1) THEN
        UPDATE {schema}.leases AS l SET fence = p_fence
            WHERE l.tenant = p_tenant AND l.conversation = p_conversation AND l.fence < p_fence;
    END IF;
END
$body$;


-- Removes a conversation. The row goes first: who appends holds its lock, so nothing is added meanwhile. Its fence
-- stays in its lease, which is made where there is none.
CREATE FUNCTION {schema}.delete_conversation(p_tenant text, p_conversation text)
RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    gone {schema}.conversations;
BEGIN
    PERFORM {schema}.lock_fences(p_tenant, p_conversation);
    DELETE FROM {schema}.conversations AS c
        WHERE c.tenant = p_tenant AND c.conversation = p_conversation RETURNING * INTO gone;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    DELETE FROM {schema}.entries AS e WHERE e.conversation = gone.id;
    DELETE FROM {schema}.forks AS f WHERE f.conversation = gone.id;
    DELETE FROM {schema}.batches AS b WHERE b.conversation = gone.id;
    IF gone.fence IS NOT NULL THEN
        INSERT INTO {schema}.leases AS l VALUES (p_tenant, p_conversation, gone.fence, gone.turn, '-infinity')
            ON CONFLICT (tenant, conversation) DO UPDATE SET fence = greatest(l.fence, excluded.fence);
    END IF;
END
$body$;

-- Appends a batch, behind p_parent if it is not null. The outcome is one of: written, known (with the entries that
-- stand under the key), gone, fenced, conflict, no_parent. Checked in this order: there, key, fence, version, the
-- turn of the last entry if p_last_turn says which it is, parent.
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
    OUT outcome text, OUT at_version bigint, OUT known_turns text[], OUT known_bodies text[],
    OUT known_first bigint, OUT known_parent bigint
) LANGUAGE plpgsql AS $body$
DECLARE
    entries CONSTANT integer := cardinality(p_turns);
    log {schema}.conversations;
    written {schema}.batches;
    goes_on boolean;
BEGIN
    LOOP
        SELECT * INTO log FROM {schema}.conversations AS c
            WHERE c.tenant = p_tenant AND c.conversation = p_conversation FOR UPDATE;
        EXIT WHEN FOUND;
        outcome := {schema}.begin_conversation(p_tenant, p_conversation, p_expected, p_fence, entries, p_parent,
            p_last_turn);
        at_version := 0;
        IF outcome IS NOT NULL THEN
            RETURN;
        END IF;
    END LOOP;
    at_version := log.version + entries;
    outcome := CASE
        WHEN p_fence < log.fence THEN 'fenced'
        WHEN log.version <> p_expected THEN 'conflict'
        WHEN p_last_turn IS NOT NULL AND p_last_turn IS DISTINCT FROM log.turn THEN 'gone'
        WHEN p_parent > log.version THEN 'no_parent'
        ELSE 'written' END;
    IF outcome = 'written' THEN
        INSERT INTO {schema}.batches VALUES (log.id, p_turn, p_round, p_step, log.version + 1, at_version)
            ON CONFLICT DO NOTHING;
    END IF;
    IF outcome <> 'written' OR NOT FOUND THEN
        at_version := log.version;
        -- It is refused, unless its key is known, which goes before everything else.
        SELECT * INTO written FROM {schema}.batches AS b
            WHERE b.conversation = log.id AND b.turn = p_turn AND b.round = p_round AND b.step = p_step;
        IF FOUND THEN
            outcome := 'known';
            at_version := written.last_seq;
            known_first := written.first_seq;
            SELECT coalesce(array_agg(e.turn ORDER BY e.seq), '{}'), coalesce(array_agg(e.body ORDER BY e.seq), '{}')
                INTO known_turns, known_bodies FROM {schema}.entries AS e
                WHERE e.conversation = log.id AND e.seq BETWEEN written.first_seq AND written.last_seq;
            known_parent := (SELECT f.parent FROM {schema}.forks AS f
                WHERE f.conversation = log.id AND f.first_seq = written.first_seq);
        END IF;
        RETURN;
    END IF;

    IF p_parent < log.version AND entries > 0 THEN
        INSERT INTO {schema}.forks VALUES (log.id, log.version + 1, p_parent);
        SELECT p.turn, p.turn_from, p.open INTO log.turn, log.turn_from, log.open
            FROM {schema}.place_at(log.id, p_parent) AS p;
    END IF;
    goes_on := entries = 0 OR coalesce(p_turns[1] = log.turn, false);
    UPDATE {schema}.conversations AS c SET
        version = at_version,
        turn = coalesce(p_turns[entries], log.turn),
        turn_from = CASE WHEN goes_on AND coalesce(p_begins[entries], 1) = 1 THEN log.turn_from
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

-- Makes a conversation, for a batch of so many entries, or says what becomes of the batch. Another writer may have
-- made it meanwhile: null means in both cases that it is there.
CREATE FUNCTION {schema}.begin_conversation(
    p_tenant text, p_conversation text, p_expected bigint, p_fence bigint, p_entries bigint, p_parent bigint,
    p_last_turn text
) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
    leased bigint;
BEGIN
    IF p_expected > 0 OR p_last_turn IS NOT NULL THEN
        RETURN 'gone';
    END IF;
    PERFORM {schema}.lock_fences(p_tenant, p_conversation);
    leased := (SELECT l.fence FROM {schema}.leases AS l
        WHERE l.tenant = p_tenant AND l.conversation = p_conversation FOR SHARE);
    IF p_fence < leased THEN
        RETURN 'fenced';
    ELSIF p_parent > 0 THEN
        RETURN 'no_parent';
    ELSIF p_entries = 0 THEN
        RETURN 'written';
    END IF;
    INSERT INTO {schema}.conversations (tenant, conversation, fence) VALUES (p_tenant, p_conversation, leased)
        ON CONFLICT DO NOTHING;
    IF FOUND THEN
        UPDATE {schema}.leases AS l SET alone = false
            WHERE l.tenant = p_tenant AND l.conversation = p_conversation;
    END IF;
    RETURN NULL;
END
$body$;


-- Removes a conversation. The row goes first: who appends holds its lock, so nothing is added meanwhile. A lease that
-- nobody holds goes with it.
CREATE FUNCTION {schema}.delete_conversation(p_tenant text, p_conversation text)
RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM {schema}.conversations AS c
        WHERE c.tenant = p_tenant AND c.conversation = p_conversation RETURNING c.id INTO gone;
    DELETE FROM {schema}.entries AS e WHERE e.conversation = gone;
    DELETE FROM {schema}.forks AS f WHERE f.conversation = gone;
    DELETE FROM {schema}.batches AS b WHERE b.conversation = gone;
    DELETE FROM {schema}.leases AS l
        WHERE l.tenant = p_tenant AND l.conversation = p_conversation AND l.held_until <= clock_timestamp();
    UPDATE {schema}.leases AS l SET alone = true
        WHERE l.tenant = p_tenant AND l.conversation = p_conversation;
END
$body$;

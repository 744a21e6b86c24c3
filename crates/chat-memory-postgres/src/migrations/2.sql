-- Who holds a conversation. It need not exist, and a lease outlives its deletion.
CREATE TABLE {schema}.leases (
    tenant text COLLATE "C" NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    -- The highest that was handed out or written with since.
    fence bigint NOT NULL,
    turn text COLLATE "C" NOT NULL,
    held_until timestamptz NOT NULL,
    -- Whether there was no conversation when somebody looked last. Such a lease goes a day after its time.
    alone boolean NOT NULL,
    PRIMARY KEY (tenant, conversation)
);

CREATE INDEX leases_alone ON {schema}.leases (held_until) WHERE alone;

-- Fences grow, also where the lease before is forgotten.
CREATE SEQUENCE {schema}.fences;

-- Whoever hands out a fence, writes with one, or makes a conversation, does so alone.
CREATE FUNCTION {schema}.lock_fences(p_tenant text, p_conversation text) RETURNS void LANGUAGE sql AS $body$
    SELECT pg_advisory_xact_lock(hashtextextended('{schema} ' || p_tenant || '/' || p_conversation, 0))
$body$;

-- Takes the conversation for so many microseconds. The outcome is given, or held with who holds it.
CREATE FUNCTION {schema}.acquire_lease(
    p_tenant text, p_conversation text, p_turn text, p_micros bigint, p_in_place_of bigint,
    OUT outcome text, OUT at_fence bigint, OUT by_turn text, OUT remaining bigint
) LANGUAGE plpgsql AS $body$
DECLARE
    log {schema}.conversations;
    held {schema}.leases;
    moment timestamptz;
BEGIN
    PERFORM {schema}.lock_fences(p_tenant, p_conversation);
    SELECT * INTO log FROM {schema}.conversations AS c
        WHERE c.tenant = p_tenant AND c.conversation = p_conversation;
    SELECT * INTO held FROM {schema}.leases AS l
        WHERE l.tenant = p_tenant AND l.conversation = p_conversation FOR UPDATE;
    moment := clock_timestamp();
    IF held.held_until > moment AND held.fence IS DISTINCT FROM p_in_place_of THEN
        outcome := 'held';
        at_fence := held.fence;
        by_turn := held.turn;
        remaining := extract(epoch FROM held.held_until - moment) * 1000000;
        RETURN;
    END IF;
    at_fence := greatest(nextval('{schema}.fences'), held.fence + 1, log.fence + 1);
    INSERT INTO {schema}.leases AS l VALUES (
        p_tenant, p_conversation, at_fence, p_turn, moment + p_micros * interval '1 microsecond', log.id IS NULL)
        ON CONFLICT (tenant, conversation) DO UPDATE SET
            fence = excluded.fence, turn = excluded.turn,
            held_until = excluded.held_until, alone = excluded.alone;
    -- Others that are forgotten by now; none of them is waited for.
    DELETE FROM {schema}.leases AS l WHERE (l.tenant, l.conversation) IN (
        SELECT old.tenant, old.conversation FROM {schema}.leases AS old
        WHERE old.alone AND old.held_until < clock_timestamp() - interval '1 day'
            AND NOT EXISTS (SELECT FROM {schema}.conversations AS c
                WHERE c.tenant = old.tenant AND c.conversation = old.conversation)
        ORDER BY old.held_until LIMIT 8 FOR UPDATE SKIP LOCKED);
    outcome := 'given';
END
$body$;

-- As before, and refuses a fence that is lower than the one that was handed out last. Locks are taken in this
-- order: fences, conversation, lease. The outcome is one of: written, known (with the entries that stand under the key),
-- fenced, conflict, gone. Checked in this order: there, key, fence, version.
-- An entry of p_opens says whether the turn is open after it; null leaves it as it was.
CREATE OR REPLACE FUNCTION {schema}.append_batch(
    p_tenant text, p_conversation text, p_expected bigint,
    p_turn text, p_round bigint, p_step bytea, p_fence bigint,
    p_turns text[], p_bodies text[], p_opens boolean[],
    OUT outcome text, OUT at_version bigint, OUT known_turns text[], OUT known_bodies text[]
) LANGUAGE plpgsql AS $body$
DECLARE
    log {schema}.conversations;
    written {schema}.batches;
    leased bigint;
BEGIN
    IF p_fence IS NOT NULL THEN
        PERFORM {schema}.lock_fences(p_tenant, p_conversation);
    END IF;
    LOOP
        SELECT * INTO log FROM {schema}.conversations AS c
            WHERE c.tenant = p_tenant AND c.conversation = p_conversation FOR UPDATE;
        EXIT WHEN FOUND;
        IF p_expected > 0 THEN
            outcome := 'gone';
            RETURN;
        ELSIF cardinality(p_turns) = 0 THEN
            outcome := 'written';
            at_version := 0;
            RETURN;
        END IF;
        PERFORM {schema}.lock_fences(p_tenant, p_conversation);
        leased := (SELECT l.fence FROM {schema}.leases AS l
            WHERE l.tenant = p_tenant AND l.conversation = p_conversation FOR SHARE);
        IF p_fence < leased THEN
            outcome := 'fenced';
            RETURN;
        END IF;
        -- Another writer may have made it meanwhile; then this one looks again.
        INSERT INTO {schema}.conversations AS c (tenant, conversation) VALUES (p_tenant, p_conversation)
            ON CONFLICT DO NOTHING RETURNING c.* INTO log;
        IF FOUND THEN
            UPDATE {schema}.leases AS l SET alone = false
                WHERE l.tenant = p_tenant AND l.conversation = p_conversation;
            EXIT;
        END IF;
    END LOOP;

    SELECT * INTO written FROM {schema}.batches AS b
        WHERE b.conversation = log.id AND b.turn = p_turn AND b.round = p_round AND b.step = p_step;
    IF FOUND THEN
        outcome := 'known';
        at_version := written.last_seq;
        SELECT coalesce(array_agg(e.turn ORDER BY e.seq), '{}'), coalesce(array_agg(e.body ORDER BY e.seq), '{}')
            INTO known_turns, known_bodies FROM {schema}.entries AS e
            WHERE e.conversation = log.id AND e.seq BETWEEN written.first_seq AND written.last_seq;
        RETURN;
    END IF;
    at_version := log.version;
    IF p_fence IS NOT NULL THEN
        leased := (SELECT l.fence FROM {schema}.leases AS l
            WHERE l.tenant = p_tenant AND l.conversation = p_conversation FOR SHARE);
    END IF;
    IF p_fence < greatest(log.fence, leased) THEN
        outcome := 'fenced';
        RETURN;
    ELSIF log.version <> p_expected THEN
        outcome := 'conflict';
        RETURN;
    END IF;

    FOR n IN 1 .. cardinality(p_turns) LOOP
        IF p_turns[n] IS DISTINCT FROM log.last_turn THEN
            log.turns := log.turns + 1;
            log.last_turn := p_turns[n];
            log.last_turn_from := log.version + n;
            log.open := true;
            INSERT INTO {schema}.turns VALUES (log.id, log.turns, log.last_turn_from);
        END IF;
        log.open := coalesce(p_opens[n], log.open);
    END LOOP;
    INSERT INTO {schema}.entries (conversation, seq, turn, body)
        SELECT log.id, log.version + new.n, new.turn, new.body
        FROM unnest(p_turns, p_bodies) WITH ORDINALITY AS new (turn, body, n);
    at_version := log.version + cardinality(p_turns);
    INSERT INTO {schema}.batches VALUES (log.id, p_turn, p_round, p_step, log.version + 1, at_version);
    UPDATE {schema}.conversations AS c SET
        version = at_version, turns = log.turns, last_turn = log.last_turn,
        last_turn_from = log.last_turn_from, open = log.open, fence = coalesce(p_fence, log.fence)
        WHERE c.id = log.id;
    IF p_fence IS NOT NULL THEN
        UPDATE {schema}.leases AS l SET fence = p_fence
            WHERE l.tenant = p_tenant AND l.conversation = p_conversation AND l.fence < p_fence;
    END IF;
    outcome := 'written';
END
$body$;

-- As before. A lease that nobody holds goes with its conversation.
CREATE OR REPLACE FUNCTION {schema}.delete_conversation(p_tenant text, p_conversation text)
RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM {schema}.conversations AS c
        WHERE c.tenant = p_tenant AND c.conversation = p_conversation RETURNING c.id INTO gone;
    DELETE FROM {schema}.entries AS e WHERE e.conversation = gone;
    DELETE FROM {schema}.turns AS t WHERE t.conversation = gone;
    DELETE FROM {schema}.batches AS b WHERE b.conversation = gone;
    DELETE FROM {schema}.leases AS l
        WHERE l.tenant = p_tenant AND l.conversation = p_conversation AND l.held_until <= clock_timestamp();
    UPDATE {schema}.leases AS l SET alone = true
        WHERE l.tenant = p_tenant AND l.conversation = p_conversation;
END
$body$;

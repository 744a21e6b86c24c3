-- A conversation. Whoever appends to it or deletes it holds the lock of its row.
CREATE TABLE {schema}.conversations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    version bigint NOT NULL DEFAULT 0,
    -- How many runs of entries of one turn the log has; the last of them, where it begins, and whether it
    -- has no end yet.
    turns bigint NOT NULL DEFAULT 0,
    last_turn text COLLATE "C",
    last_turn_from bigint NOT NULL DEFAULT 1,
    open boolean NOT NULL DEFAULT false,
    fence bigint,
    UNIQUE (tenant, conversation)
) WITH (fillfactor = 70);

-- The log. The body is JSON as it was written; jsonb could hold neither U+0000 nor a number as it stands.
CREATE TABLE {schema}.entries (
    conversation bigint NOT NULL,
    seq bigint NOT NULL,
    turn text COLLATE "C" NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (conversation, seq)
);

-- Where the n-th turn begins.
CREATE TABLE {schema}.turns (
    conversation bigint NOT NULL,
    number bigint NOT NULL,
    first_seq bigint NOT NULL,
    PRIMARY KEY (conversation, number)
);

-- Which entries were written under which key.
CREATE TABLE {schema}.batches (
    conversation bigint NOT NULL,
    turn text COLLATE "C" NOT NULL,
    round bigint NOT NULL,
    step bytea NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    PRIMARY KEY (conversation, turn, round, step)
);

-- Appends a batch. The outcome is one of: written, known (with the entries that stand under the key),
-- fenced, conflict, gone. Checked in this order: there, key, fence, version.
-- An entry of p_opens says whether the turn is open after it; null leaves it as it was.
CREATE FUNCTION {schema}.append_batch(
    p_tenant text, p_conversation text, p_expected bigint,
    p_turn text, p_round bigint, p_step bytea, p_fence bigint,
    p_turns text[], p_bodies text[], p_opens boolean[],
    OUT outcome text, OUT at_version bigint, OUT known_turns text[], OUT known_bodies text[]
) LANGUAGE plpgsql AS $body$
DECLARE
    log {schema}.conversations;
    written {schema}.batches;
BEGIN
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
        -- Another writer may make it at the same time; then this one waits, and looks again.
        INSERT INTO {schema}.conversations AS c (tenant, conversation) VALUES (p_tenant, p_conversation)
            ON CONFLICT DO NOTHING RETURNING c.* INTO log;
        EXIT WHEN FOUND;
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
    IF p_fence < log.fence THEN
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
    outcome := 'written';
END
$body$;

-- Removes a conversation. The row goes first: who appends holds its lock, so nothing is added meanwhile.
CREATE FUNCTION {schema}.delete_conversation(p_tenant text, p_conversation text)
RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM {schema}.conversations AS c
        WHERE c.tenant = p_tenant AND c.conversation = p_conversation RETURNING c.id INTO gone;
    DELETE FROM {schema}.entries AS e WHERE e.conversation = gone;
    DELETE FROM {schema}.turns AS t WHERE t.conversation = gone;
    DELETE FROM {schema}.batches AS b WHERE b.conversation = gone;
END
$body$;

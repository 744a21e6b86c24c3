-- The entries that do not follow the one before them, and what they follow: there branches part. What follows
-- something has a higher number, so the entries of a branch stand in the order of their numbers.
CREATE TABLE {schema}.forks (
    conversation bigint NOT NULL,
    first_seq bigint NOT NULL,
    parent bigint NOT NULL CHECK (parent >= 0 AND parent < first_seq),
    PRIMARY KEY (conversation, first_seq)
);

-- Whether the turn is open after the entry; null where an older version wrote it.
ALTER TABLE {schema}.entries ADD COLUMN open boolean;

-- Turns are numbered along their branch from here on, so that several may have one number. In conversations,
-- `turns`, `last_turn`, `last_turn_from` and `open` are of the branch that was written last.
ALTER TABLE {schema}.turns DROP CONSTRAINT turns_pkey, ADD PRIMARY KEY (conversation, number, first_seq);
CREATE UNIQUE INDEX turns_by_place ON {schema}.turns (conversation, first_seq);

-- The part of a branch that ends with an entry: where it begins, and behind what. One seek.
CREATE FUNCTION {schema}.segment_to(
    p_id bigint, p_last bigint, OUT first_seq bigint, OUT parent bigint
) LANGUAGE plpgsql STABLE AS $body$
BEGIN
    SELECT f.first_seq, f.parent INTO first_seq, parent FROM {schema}.forks AS f
        WHERE f.conversation = p_id AND f.first_seq <= p_last ORDER BY f.first_seq DESC LIMIT 1;
    first_seq := coalesce(first_seq, 1);
END
$body$;

-- The last turn of the branch to an entry: its number and where it begins. A seek or two for each segment that
-- it is looked for in. There is none before the first entry: number 0.
CREATE FUNCTION {schema}.turn_at(
    p_id bigint, p_tip bigint, OUT number bigint, OUT turn_from bigint
) LANGUAGE plpgsql STABLE AS $body$
DECLARE
    at bigint := p_tip;
    segment record;
    found_turn {schema}.turns;
BEGIN
    WHILE at > 0 LOOP
        segment := {schema}.segment_to(p_id, at);
        -- Compared as a row and in the order of the index, so that whatever the statistics say one seek does it.
        SELECT * INTO found_turn FROM {schema}.turns AS t
            WHERE (t.conversation, t.first_seq) <= (p_id, at)
            ORDER BY t.conversation DESC, t.first_seq DESC LIMIT 1;
        IF found_turn.conversation = p_id AND found_turn.first_seq >= segment.first_seq THEN
            number := found_turn.number;
            turn_from := found_turn.first_seq;
            RETURN;
        END IF;
        at := coalesce(segment.parent, 0);
    END LOOP;
    number := 0;
    turn_from := 1;
END
$body$;

-- Where the turn of this number begins on the branch to an entry.
CREATE FUNCTION {schema}.turn_start(p_id bigint, p_number bigint, p_tip bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $body$
DECLARE
    at bigint := p_tip;
    segment record;
    found_turn {schema}.turns;
BEGIN
    WHILE at > 0 LOOP
        segment := {schema}.segment_to(p_id, at);
        SELECT * INTO found_turn FROM {schema}.turns AS t
            WHERE (t.conversation, t.number, t.first_seq) >= (p_id, p_number, segment.first_seq)
            ORDER BY t.conversation, t.number, t.first_seq LIMIT 1;
        IF (found_turn.conversation, found_turn.number) = (p_id, p_number) AND found_turn.first_seq <= at THEN
            RETURN found_turn.first_seq;
        END IF;
        at := coalesce(segment.parent, 0);
    END LOOP;
    RETURN 1;
END
$body$;

-- Reads the end of a branch: the one to p_tip, or the one that was written last. How much is so many entries, or
-- so many turns. The first row is the head: what there is to know, and of which segments the entries are; a row
-- for each entry follows. What comes back begins where the view does, or where the open turn does, whichever is
-- first. The function is stable, so that all it reads is of one moment.
CREATE FUNCTION {schema}.load_branch(
    p_tenant text, p_conversation text, p_tip bigint, p_entries bigint, p_turns bigint
) RETURNS TABLE (
    version bigint, open boolean, turn_from bigint, view_from bigint,
    firsts bigint[], lasts bigint[], parents bigint[],
    seq bigint, turn text, body text
) LANGUAGE plpgsql STABLE AS $body$
DECLARE
    log {schema}.conversations;
    segment record;
    tip bigint;
    number bigint;
    at bigint;
    remaining bigint;
    read_from bigint;
BEGIN
    SELECT * INTO log FROM {schema}.conversations AS c
        WHERE c.tenant = p_tenant AND c.conversation = p_conversation;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    version := log.version;
    tip := coalesce(p_tip, log.version);
    IF tip > log.version THEN
        RETURN NEXT;
        RETURN;
    ELSIF tip = log.version THEN
        number := log.turns;
        turn_from := log.last_turn_from;
        open := log.open;
    ELSE
        SELECT t.number, t.turn_from INTO number, turn_from FROM {schema}.turn_at(log.id, tip) AS t;
        open := (SELECT e.open FROM {schema}.entries AS e WHERE e.conversation = log.id AND e.seq = tip);
        open := CASE WHEN tip = 0 THEN false ELSE open END;
    END IF;

    IF p_turns = 0 OR p_entries = 0 THEN
        view_from := tip + 1;
    ELSIF p_turns IS NOT NULL THEN
        view_from := CASE WHEN p_turns >= number THEN 1
            ELSE {schema}.turn_start(log.id, number - p_turns + 1, tip) END;
    ELSE
        at := tip;
        remaining := p_entries;
        LOOP
            segment := {schema}.segment_to(log.id, at);
            EXIT WHEN coalesce(segment.parent, 0) = 0 OR at - segment.first_seq + 1 >= remaining;
            remaining := remaining - (at - segment.first_seq + 1);
            at := segment.parent;
        END LOOP;
        view_from := greatest(segment.first_seq, at - remaining + 1);
    END IF;

    -- Where it is not known whether the turn is open, its entries tell.
    read_from := CASE WHEN coalesce(open, true) THEN least(view_from, turn_from) ELSE view_from END;
    at := tip;
    WHILE at > 0 AND at >= read_from LOOP
        segment := {schema}.segment_to(log.id, at);
        firsts := greatest(segment.first_seq, read_from) || firsts;
        lasts := at || lasts;
        parents := CASE WHEN segment.first_seq >= read_from THEN segment.parent END || parents;
        at := coalesce(segment.parent, 0);
    END LOOP;
    RETURN NEXT;
    FOR n IN 1 .. coalesce(cardinality(firsts), 0) LOOP
        RETURN QUERY SELECT NULL::bigint, NULL::boolean, NULL::bigint, NULL::bigint,
            NULL::bigint[], NULL::bigint[], NULL::bigint[], e.seq, e.turn, e.body
            FROM {schema}.entries AS e
            WHERE e.conversation = log.id AND e.seq BETWEEN firsts[n] AND lasts[n] ORDER BY e.seq;
    END LOOP;
END
$body$;

-- Appends a batch, as before, behind p_parent if it is not null: the last outcome that is new is no_parent.
-- Checked in this order: there, key, fence, version, parent. For a known batch, known_parent is what its first
-- entry follows, where that is not the entry before it.
CREATE FUNCTION {schema}.append_batch(
    p_tenant text, p_conversation text, p_expected bigint,
    p_turn text, p_round bigint, p_step bytea, p_fence bigint,
    p_turns text[], p_bodies text[], p_opens boolean[], p_parent bigint,
    OUT outcome text, OUT at_version bigint, OUT known_turns text[], OUT known_bodies text[],
    OUT known_first bigint, OUT known_parent bigint
) LANGUAGE plpgsql AS $body$
DECLARE
    log {schema}.conversations;
    written {schema}.batches;
    leased bigint;
    after_opens boolean[] := '{}';
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
        ELSIF p_parent > 0 THEN
            outcome := 'no_parent';
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
        known_first := written.first_seq;
        SELECT coalesce(array_agg(e.turn ORDER BY e.seq), '{}'), coalesce(array_agg(e.body ORDER BY e.seq), '{}')
            INTO known_turns, known_bodies FROM {schema}.entries AS e
            WHERE e.conversation = log.id AND e.seq BETWEEN written.first_seq AND written.last_seq;
        known_parent := (SELECT f.parent FROM {schema}.forks AS f
            WHERE f.conversation = log.id AND f.first_seq = written.first_seq);
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
    ELSIF p_parent > log.version THEN
        outcome := 'no_parent';
        RETURN;
    END IF;

    IF p_parent < log.version AND cardinality(p_turns) > 0 THEN
        INSERT INTO {schema}.forks VALUES (log.id, log.version + 1, p_parent);
        SELECT t.number, t.turn_from INTO log.turns, log.last_turn_from
            FROM {schema}.turn_at(log.id, p_parent) AS t;
        SELECT e.turn, coalesce(e.open, true) INTO log.last_turn, log.open FROM {schema}.entries AS e
            WHERE e.conversation = log.id AND e.seq = p_parent;
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
        after_opens := after_opens || log.open;
    END LOOP;
    INSERT INTO {schema}.entries (conversation, seq, turn, body, open)
        SELECT log.id, log.version + new.n, new.turn, new.body, new.open
        FROM unnest(p_turns, p_bodies, after_opens) WITH ORDINALITY AS new (turn, body, open, n);
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

-- As before, with the forks.
CREATE OR REPLACE FUNCTION {schema}.delete_conversation(p_tenant text, p_conversation text)
RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM {schema}.conversations AS c
        WHERE c.tenant = p_tenant AND c.conversation = p_conversation RETURNING c.id INTO gone;
    DELETE FROM {schema}.entries AS e WHERE e.conversation = gone;
    DELETE FROM {schema}.turns AS t WHERE t.conversation = gone;
    DELETE FROM {schema}.forks AS f WHERE f.conversation = gone;
    DELETE FROM {schema}.batches AS b WHERE b.conversation = gone;
    DELETE FROM {schema}.leases AS l
        WHERE l.tenant = p_tenant AND l.conversation = p_conversation AND l.held_until <= clock_timestamp();
    UPDATE {schema}.leases AS l SET alone = true
        WHERE l.tenant = p_tenant AND l.conversation = p_conversation;
END
$body$;

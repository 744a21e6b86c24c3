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

-- What is known of an entry; of the last one before it on its branch, if it is missing. A seek or two for each
-- segment that one is looked for in.
CREATE FUNCTION {schema}.place_at(
    p_id bigint, p_seq bigint, OUT turn text, OUT turn_from bigint, OUT open boolean
) LANGUAGE plpgsql STABLE AS $body$
DECLARE
    at bigint := p_seq;
    segment record;
    found_entry record;
BEGIN
    WHILE at > 0 LOOP
        segment := {schema}.segment_to(p_id, at);
        -- Compared as a row and in the order of the index, so that whatever the statistics say one seek does it.
        SELECT e.conversation, e.seq, e.turn, e.turn_from, e.open INTO found_entry FROM {schema}.entries AS e
            WHERE (e.conversation, e.seq) <= (p_id, at) ORDER BY e.conversation DESC, e.seq DESC LIMIT 1;
        IF found_entry.conversation = p_id AND found_entry.seq >= segment.first_seq THEN
            turn := found_entry.turn;
            turn_from := found_entry.turn_from;
            open := found_entry.open;
            RETURN;
        END IF;
        at := coalesce(segment.parent, 0);
    END LOOP;
    turn_from := 1;
    open := false;
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
    END IF;
    SELECT p.turn_from, p.open INTO turn_from, open FROM {schema}.place_at(log.id, tip) AS p;

    IF p_turns = 0 OR p_entries = 0 THEN
        view_from := tip + 1;
    ELSIF p_turns >= tip THEN
        -- There are no more turns than entries.
        view_from := 1;
    ELSIF p_turns IS NOT NULL THEN
        view_from := turn_from;
        FOR n IN 2 .. p_turns LOOP
            segment := {schema}.segment_to(log.id, view_from);
            at := CASE WHEN segment.first_seq = view_from THEN coalesce(segment.parent, 0) ELSE view_from - 1 END;
            EXIT WHEN at = 0;
            view_from := (SELECT p.turn_from FROM {schema}.place_at(log.id, at) AS p);
        END LOOP;
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

    read_from := CASE WHEN open THEN least(view_from, turn_from) ELSE view_from END;
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

-- Whoever hands out a fence, or makes a conversation, does so alone. Locks are taken in this order: fences,
-- conversation, lease.
CREATE FUNCTION {schema}.lock_fences(p_tenant text, p_conversation text) RETURNS void LANGUAGE sql AS $body$
    SELECT pg_advisory_xact_lock(hashtextextended('{schema} ' || p_tenant || '/' || p_conversation, 0))
$body$;


-- Takes the conversation for so many microseconds, when those who write to it are done. The outcome is given, or held
-- with who holds it or waits for it before this turn. A refused turn takes a place if p_waits, or keeps it.
CREATE FUNCTION {schema}.acquire_lease(
    p_tenant text, p_conversation text, p_turn text, p_micros bigint, p_in_place_of bigint, p_waits boolean,
    OUT outcome text, OUT at_fence bigint, OUT by_turn text, OUT remaining bigint
) LANGUAGE plpgsql AS $body$
DECLARE
    log {schema}.conversations;
    held {schema}.leases;
    ahead {schema}.waiting;
    moment timestamptz;
    takes_over boolean;
    is_held boolean;
BEGIN
    PERFORM {schema}.lock_fences(p_tenant, p_conversation);
    SELECT * INTO log FROM {schema}.conversations AS c
        WHERE c.tenant = p_tenant AND c.conversation = p_conversation FOR UPDATE;
    SELECT * INTO held FROM {schema}.leases AS l
        WHERE l.tenant = p_tenant AND l.conversation = p_conversation FOR UPDATE;
    moment := clock_timestamp();
    SELECT * INTO ahead FROM {schema}.waiting AS w
        WHERE w.tenant = p_tenant AND w.conversation = p_conversation AND w.ends_at > moment
        ORDER BY w.place LIMIT 1;
    takes_over := coalesce(held.fence = p_in_place_of, false);
    is_held := coalesce(held.held_until > moment, false) AND NOT takes_over;
    IF ahead.turn = p_turn
        OR takes_over AND (held.turn = p_turn OR ahead.since > moment - interval '10 seconds')
    THEN
        ahead := NULL;
    END IF;
    IF is_held OR ahead.turn IS NOT NULL THEN
        outcome := 'held';
        at_fence := coalesce(held.fence, 0);
        by_turn := CASE WHEN is_held THEN held.turn ELSE ahead.turn END;
        remaining := extract(epoch FROM CASE WHEN is_held THEN held.held_until ELSE ahead.ends_at END - moment)
            * 1000000;
        IF p_waits THEN
            DELETE FROM {schema}.waiting AS w
                WHERE w.tenant = p_tenant AND w.conversation = p_conversation AND w.ends_at <= moment;
            UPDATE {schema}.waiting AS w SET ends_at = moment + interval '3 seconds'
                WHERE w.tenant = p_tenant AND w.conversation = p_conversation AND w.turn = p_turn;
            IF NOT FOUND THEN
                INSERT INTO {schema}.waiting (tenant, conversation, turn, since, ends_at)
                    SELECT p_tenant, p_conversation, p_turn, moment, moment + interval '3 seconds'
                    WHERE (SELECT count(*) FROM {schema}.waiting AS w
                        WHERE w.tenant = p_tenant AND w.conversation = p_conversation) < 100;
            END IF;
        END IF;
        RETURN;
    END IF;
    DELETE FROM {schema}.waiting AS w
        WHERE w.tenant = p_tenant AND w.conversation = p_conversation AND (w.turn = p_turn OR w.ends_at <= moment);
    -- The time, so that it grows even if the row was lost.
    at_fence := greatest(held.fence + 1, log.fence + 1, (extract(epoch FROM moment) * 1000000)::bigint);
    UPDATE {schema}.conversations AS c SET fence = at_fence WHERE c.id = log.id;
    INSERT INTO {schema}.leases AS l VALUES (
        p_tenant, p_conversation, at_fence, p_turn, moment + p_micros * interval '1 microsecond')
        ON CONFLICT (tenant, conversation) DO UPDATE SET
            fence = excluded.fence, turn = excluded.turn, held_until = excluded.held_until;
    outcome := 'given';
END
$body$;

-- Whoever hands out a fence, or makes a conversation, does so alone. Locks are taken in this order: fences,
-- conversation, lease.
CREATE FUNCTION {schema}.lock_fences(p_tenant text, p_conversation text) RETURNS void LANGUAGE sql AS $body$
    SELECT pg_advisory_xact_lock(hashtextextended('{schema} ' || p_tenant || '/' || p_conversation, 0))
$body$;


-- Takes the conversation for so many microseconds, when those who write to it are done. The outcome is given, or held
-- with who holds it.
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
        WHERE c.tenant = p_tenant AND c.conversation = p_conversation FOR UPDATE;
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
    UPDATE {schema}.conversations AS c SET fence = at_fence WHERE c.id = log.id;
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

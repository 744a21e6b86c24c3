-- A conversation. Whoever appends to it, deletes it or takes it holds the lock of its row.
CREATE TABLE {schema}.conversations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    version bigint NOT NULL DEFAULT 0,
    -- Of the last entry, as it stands with that, too.
    turn text COLLATE "C",
    turn_from bigint NOT NULL DEFAULT 1,
    open boolean NOT NULL DEFAULT false,
    -- The highest that was handed out or written with.
    fence bigint,
    UNIQUE (tenant, conversation)
) WITH (fillfactor = 70);

-- The log. The body is JSON as it was written; jsonb could hold neither U+0000 nor a number as it stands.
-- With each entry stand the one at which its turn begins on its branch, and whether the turn is open after it.
CREATE TABLE {schema}.entries (
    conversation bigint NOT NULL,
    seq bigint NOT NULL,
    turn_from bigint NOT NULL,
    open boolean NOT NULL,
    turn text COLLATE "C" NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (conversation, seq)
);

-- The entries that do not follow the one before them, and what they follow: there branches part. What follows
-- something has a higher number, so the entries of a branch stand in the order of their numbers.
CREATE TABLE {schema}.forks (
    conversation bigint NOT NULL,
    first_seq bigint NOT NULL,
    parent bigint NOT NULL CHECK (parent >= 0 AND parent < first_seq),
    PRIMARY KEY (conversation, first_seq)
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

-- Who holds a conversation. It need not exist. A lease stays for ever: its fence outlives its time, and the deletion of
-- the conversation.
CREATE TABLE {schema}.leases (
    tenant text COLLATE "C" NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    -- The highest that was handed out or written with.
    fence bigint NOT NULL,
    turn text COLLATE "C" NOT NULL,
    held_until timestamptz NOT NULL,
    PRIMARY KEY (tenant, conversation)
);

-- The turns that wait for a conversation, in the order of their places.
CREATE TABLE {schema}.waiting (
    tenant text COLLATE "C" NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    turn text COLLATE "C" NOT NULL,
    place bigint GENERATED ALWAYS AS IDENTITY,
    since timestamptz NOT NULL,
    -- Until when it waits without another request.
    ends_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, conversation, turn)
);

-- A document of a tenant. The body is the document as JSON, as it was written; jsonb could hold neither U+0000 nor a
-- number as it stands. The metadata stand there for conditions only. The embedding has the length 1.
CREATE TABLE {schema}.documents (
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    body text NOT NULL,
    metadata jsonb NOT NULL,
    embedding {vector}.vector({dimensions}) NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- Whether a grant, by its note, can be spent on a feature. One that is restricted can not without one.
CREATE OR REPLACE FUNCTION :"schema".open_to(note jsonb, feature text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT note OPERATOR(pg_catalog.->) 'onlyFor' IS NULL
    OR coalesce(pg_catalog.jsonb_exists(note OPERATOR(pg_catalog.->) 'onlyFor', feature), false)
$$;

-- Whether a grant, by its note, can be spent on a feature. One that is restricted can not without one.
CREATE OR REPLACE FUNCTION :"schema".open_to(note jsonb, feature text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT note -> 'onlyFor' IS NULL OR coalesce(jsonb_exists(note -> 'onlyFor', feature), false)
$$;

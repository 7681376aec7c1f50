-- Whole milliseconds from one moment to a later one, never less than none.
CREATE OR REPLACE FUNCTION :"schema".remaining_ms(until timestamptz, since timestamptz) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT greatest(0, ceil(extract(epoch FROM until - since) * 1000))::bigint
$$;

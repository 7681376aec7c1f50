-- On the source: offers the rows of the buckets, now and as they change. Answers the months it has movements
-- of, by their first days, for the target to have the same.
CREATE OR REPLACE FUNCTION :"schema".publish_move(move uuid) RETURNS text
LANGUAGE plpgsql SET search_path = :"schema", pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  journal CONSTANT shard_move := move_at(move, '{copying}');
  name CONSTANT text := move_name(move);
  filtered text;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_publication p WHERE p.pubname = name) THEN
    SELECT string_agg(format('%s WHERE (bucket = ANY (%L::smallint[]))', t, journal.buckets), ', ')
    INTO filtered
    FROM unnest(move_tables(ARRAY(SELECT jsonb_array_elements_text(journal.detail -> 'tables')))) AS t;
    EXECUTE format('CREATE PUBLICATION %I FOR TABLE %s WITH '
      '(publish = ''insert, update, delete'', publish_via_partition_root = true)', name, filtered);
  END IF;
  RETURN (
    SELECT coalesce(json_agg(to_date(substr(c.relname, 10), 'YYYYMM') ORDER BY c.relname), '[]')
    FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'movement'::regclass AND c.relname ~ '^movement_[0-9]{6}$'
  );
END;
$$;

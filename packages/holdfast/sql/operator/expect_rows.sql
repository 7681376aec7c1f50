-- On the target: how many rows the source has, counted when nobody could write to the buckets any more. take_move()
-- takes them only if there are as many here.
CREATE OR REPLACE FUNCTION :"schema".expect_rows(move uuid, counts text) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  journal CONSTANT shard_move := move_at(move, '{copying,taken,done}');
BEGIN
  UPDATE shard_move m
  SET detail = m.detail || jsonb_build_object('rows', counts::jsonb), changed_at = clock_timestamp()
  WHERE m.id = move AND journal.step = 'copying';
END;
$$;

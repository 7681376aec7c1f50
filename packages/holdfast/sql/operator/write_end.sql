-- On the source, when every transaction that was there at the mark has ended: the last row that is sent.
CREATE OR REPLACE FUNCTION :"schema".write_end(move uuid) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  journal CONSTANT shard_move := move_at(move, '{leaving}');
BEGIN
  INSERT INTO shard_end (bucket, move) VALUES (journal.buckets[1], move) ON CONFLICT DO NOTHING;
END;
$$;

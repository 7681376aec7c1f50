-- On the target: receives the rows of the buckets, first those that are there, then what changes. Months are
-- those of the source. What was left of an earlier attempt has to be cleared before.
CREATE OR REPLACE FUNCTION :"schema".subscribe_move(move uuid, months text, connection text) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  journal CONSTANT shard_move := move_at(move, '{copying}');
  name CONSTANT text := move_name(move);
  first date;
BEGIN
  IF subscribed(move) THEN
    RETURN;
  END IF;
  FOR first IN SELECT x::date FROM json_array_elements_text(months::json) AS x LOOP
    CONTINUE WHEN EXISTS (
      SELECT FROM movement_default m
      WHERE m.at >= first::timestamp AT TIME ZONE 'UTC'
        AND m.at < (first + interval '1 month') AT TIME ZONE 'UTC'
    );
    PERFORM make_month(first);
  END LOOP;
  BEGIN
    -- Flushed before it is confirmed, so that nothing confirmed is lost with this server.
    EXECUTE format('CREATE SUBSCRIPTION %I CONNECTION %L PUBLICATION %I WITH '
      '(create_slot = false, slot_name = %L, streaming = off, synchronous_commit = ''on'')',
      name, connection, name, name);
  EXCEPTION
    -- The message of PostgreSQL quotes from the connection string, its context all of it.
    WHEN syntax_error THEN
      RAISE EXCEPTION 'the connection string of the source cannot be read' USING ERRCODE = 'HF003';
    -- Not to be taken for a loss of the connection to this server; without the address.
    WHEN connection_exception THEN
      RAISE EXCEPTION '%', regexp_replace(SQLERRM, '^.* failed: ', '') USING ERRCODE = 'HF005';
    WHEN OTHERS THEN
      RAISE EXCEPTION '%', SQLERRM USING ERRCODE = SQLSTATE;
  END;
  -- What its workers leave at the source if they are ended at a bad moment.
  UPDATE shard_move m SET changed_at = clock_timestamp(), detail = m.detail || jsonb_build_object('slots', (
    SELECT format('^pg_%s_sync_[0-9]+_%s$', s.oid, c.system_identifier)
    FROM pg_subscription s, pg_control_system() c WHERE s.subname = name
      AND s.subdbid = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
  )) WHERE m.id = move;
END;
$$;

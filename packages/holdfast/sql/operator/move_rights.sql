-- What this role lacks for its parts in a move, as a JSON list of sentences, each with what gives it; empty if nothing.
-- Nothing is left of it. Slots, subscriptions and the setting are tried, not looked up: managed services let roles of
-- their own do what otherwise a superuser has to. Parts are: publish; slot, for a slot that is yet to be made, or keep;
-- receive, over this connection; delete.
CREATE OR REPLACE FUNCTION :"schema".move_rights(parts text[], names text[], connection text) RETURNS text
LANGUAGE plpgsql SET search_path = :"schema", pg_temp SET quote_all_identifiers = off SET client_min_messages = error AS $$
DECLARE
  role CONSTANT text := quote_ident(current_user);
  trial CONSTANT text := 'holdfast_trial_' || pg_backend_pid();
  creates CONSTANT boolean := has_database_privilege(current_database(), 'CREATE');
  missing text[] := '{}';
BEGIN
  IF parts && '{publish,receive}' THEN
    IF NOT creates THEN
      missing := missing || format('role %s may not create anything in the database (GRANT CREATE ON DATABASE %I TO %1$s)',
        role, current_database());
    END IF;
    missing := missing || ARRAY(
      SELECT format('role %s does not own %s (GRANT %I TO %1$s)', role, c.oid::regclass, pg_get_userbyid(c.relowner))
      FROM pg_class c WHERE c.oid = ANY (move_tables(names)) AND NOT pg_has_role(c.relowner, 'USAGE')
      ORDER BY 1
    );
  END IF;
  IF parts && '{slot,keep}' THEN
    BEGIN
      -- One that keeps nothing, and is gone with the session at the latest. A logical one would wait for all writers.
      PERFORM pg_create_physical_replication_slot(trial, false, true);
      PERFORM pg_drop_replication_slot(trial);
    EXCEPTION
      WHEN insufficient_privilege THEN
        missing := missing || format('role %s may not use replication slots (ALTER ROLE %1$s REPLICATION)', role);
      WHEN configuration_limit_exceeded THEN
        IF 'slot' = ANY (parts) THEN
          missing := missing || 'no replication slot is free (raise max_replication_slots)'::text;
        END IF;
    END;
  END IF;
  IF 'receive' = ANY (parts) AND creates THEN
    BEGIN
      EXECUTE format('CREATE SUBSCRIPTION %I CONNECTION %L PUBLICATION %1$I WITH (connect = false, slot_name = NONE)',
        trial, connection);
      RAISE EXCEPTION 'it can be created' USING ERRCODE = 'HF000';
    EXCEPTION
      WHEN SQLSTATE 'HF000' THEN NULL;
      WHEN insufficient_privilege THEN
        missing := missing || CASE WHEN to_regrole('pg_create_subscription') IS NULL
          THEN format('role %s may not create subscriptions (before PostgreSQL 16 only superusers may)', role)
          ELSE format('role %s may not create subscriptions (GRANT pg_create_subscription TO %1$s)', role) END;
      -- Their messages quote from the connection string, their context all of it.
      WHEN prohibited_sql_statement_attempted THEN
        missing := missing || format('the connection string of the source has no password, which a role needs that is no '
          'superuser, as %s', role);
      WHEN syntax_error THEN
        missing := missing || 'the connection string of the source cannot be read'::text;
      WHEN OTHERS THEN
        RAISE EXCEPTION '%', SQLERRM USING ERRCODE = SQLSTATE;
    END;
  END IF;
  IF 'delete' = ANY (parts) THEN
    BEGIN
      PERFORM set_config('session_replication_role', current_setting('session_replication_role'), true);
    EXCEPTION WHEN insufficient_privilege THEN
      missing := missing || format('role %s may not delete without triggers (GRANT SET ON PARAMETER '
        'session_replication_role TO %1$s)', role);
    END;
  END IF;
  RETURN array_to_json(missing)::text;
END;
$$;

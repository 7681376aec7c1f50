-- Makes the partition of a month in UTC, by its first day, unless it is there. It is made apart and attached, so that
-- others can write to all months meanwhile. Whoever reads all movements, or the default partition, is waited for, but
-- only for a moment: everybody who comes after us would wait behind us.
CREATE OR REPLACE FUNCTION :"schema".make_month(first date) RETURNS boolean
LANGUAGE plpgsql
SET search_path = :"schema", pg_temp
SET lock_timeout = '100ms'
-- Bounds are written as text and read again: no abbreviation of a zone may come in between.
SET datestyle = 'ISO, YMD'
SET timezone = 'UTC'
AS $$
DECLARE
  name CONSTANT text := 'movement_' || to_char(first, 'YYYYMM');
  other text;
BEGIN
  IF to_regclass(format('%I.%I', current_schema(), name)) IS NOT NULL THEN
    RETURN false;
  END IF;
  EXECUTE format('CREATE TABLE %I.%I (LIKE %1$I.movement INCLUDING ALL)', current_schema(), name);
  -- Made by a superuser, it would be closed to the functions, which run with the rights of the owner.
  EXECUTE format('ALTER TABLE %I.%I OWNER TO %I', current_schema(), name,
    (SELECT pg_get_userbyid(c.relowner) FROM pg_class c WHERE c.oid = 'movement'::regclass));
  -- Triggers of statements are not inherited.
  EXECUTE format(
    'CREATE TRIGGER movement_no_truncate BEFORE TRUNCATE ON %I.%I '
      'FOR EACH STATEMENT EXECUTE FUNCTION %I.refuse_change()',
    current_schema(), name, current_schema()
  );
  -- Default privileges may have given rights to others: nobody but the owner has any on a month.
  FOR other IN
    SELECT DISTINCT coalesce(quote_ident(r.rolname), 'PUBLIC')
    FROM pg_class c
    CROSS JOIN LATERAL aclexplode(c.relacl) g
    LEFT JOIN pg_roles r ON r.oid = g.grantee
    WHERE c.oid = format('%I.%I', current_schema(), name)::regclass AND g.grantee <> c.relowner
  LOOP
    EXECUTE format('REVOKE ALL ON %I.%I FROM ', current_schema(), name) || other;
  END LOOP;
  EXECUTE format('ALTER TABLE %I.movement ATTACH PARTITION %1$I.%I FOR VALUES FROM (%L) TO (%L)',
    current_schema(), name,
    first::timestamp AT TIME ZONE 'UTC', (first + interval '1 month') AT TIME ZONE 'UTC'
  );
  RETURN true;
END;
$$;

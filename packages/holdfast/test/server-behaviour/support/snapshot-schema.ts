/**
 * What the forms of the truth table read and call. The writer's work is row 2 of `seats` and
 * version 2 of row 1: a read that counts two seats, or sees version 2, is fresh.
 */
export const schema = `
  CREATE TABLE seats (id int PRIMARY KEY, version int NOT NULL);
  CREATE TABLE totals (id int PRIMARY KEY, seats int NOT NULL);
  CREATE TABLE notes (id int PRIMARY KEY, seats int NOT NULL);

  CREATE FUNCTION plpgsql_volatile() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
    DECLARE n bigint;
    BEGIN PERFORM pg_advisory_xact_lock(1); SELECT count(*) INTO n FROM seats; RETURN n; END $$;
  CREATE FUNCTION plpgsql_stable() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
    DECLARE n bigint;
    BEGIN PERFORM pg_advisory_xact_lock(1); SELECT count(*) INTO n FROM seats; RETURN n; END $$;
  CREATE FUNCTION plpgsql_immutable() RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
    DECLARE n bigint;
    BEGIN PERFORM pg_advisory_xact_lock(1); SELECT count(*) INTO n FROM seats; RETURN n; END $$;

  CREATE FUNCTION sql_volatile() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT pg_advisory_xact_lock(1); SELECT count(*) FROM seats $$;
  CREATE FUNCTION sql_stable() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT pg_advisory_xact_lock(1); SELECT count(*) FROM seats $$;
  CREATE FUNCTION sql_volatile_count() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT count(*) FROM seats $$;

  CREATE FUNCTION sql_inlined_lock() RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT pg_advisory_xact_lock(1) IS NOT NULL $$;
  CREATE FUNCTION sql_inlined_read() RETURNS TABLE (n bigint) LANGUAGE sql STABLE AS $$
    SELECT count(*) FROM (SELECT pg_advisory_xact_lock(1) OFFSET 0) AS l, seats $$;
`

export const reset = `
  TRUNCATE seats, totals, notes;
  INSERT INTO seats VALUES (1, 1);
  INSERT INTO totals VALUES (1, 1);
  INSERT INTO notes VALUES (1, 0);
`

/**
 * The writer: lock, check, write. It also reads `notes`, which only the UPDATE forms write, so that
 * SERIALIZABLE has the read that it needs to notice them.
 */
export const writerWork = `
  SELECT pg_advisory_xact_lock(1);
  SELECT count(*) FROM seats;
  SELECT seats FROM notes;
  UPDATE seats SET version = 2 WHERE id = 1;
  INSERT INTO seats VALUES (2, 1);
  UPDATE totals SET seats = 2;
`

/** What the reader writes once it has read, as a check-then-write would. */
export const readersWrite = 'INSERT INTO seats VALUES (3, 1)'

import type pg from 'pg'

/**
 * Makes everything that happened so far older by so many months, as if nobody had come since. Only
 * calendar windows cannot be moved: the ids of their accounts are made of their time.
 */
export async function growOlder(observer: pg.Pool, months: number): Promise<void> {
  const age = `make_interval(months => ${months})`
  await asSuperuser(
    observer,
    `SELECT holdfast.make_month(x.first) FROM (
       SELECT DISTINCT date_trunc('month', (at - ${age}) AT TIME ZONE 'UTC')::date AS first
       FROM holdfast.movement
     ) x;
     UPDATE holdfast.movement SET at = at - ${age};
     UPDATE holdfast.operation SET at = at - ${age};
     UPDATE holdfast.balance SET moved_at = moved_at - ${age}, refilled_at = refilled_at - ${age};
     UPDATE holdfast.checkpoint SET at = at - ${age};
     UPDATE holdfast.hold SET ended_at = ended_at - ${age}`,
  )
}

/** As if nobody had ever come: no rows, and no months before this one. */
export async function emptyLedger(observer: pg.Pool): Promise<void> {
  await asSuperuser(
    observer,
    `TRUNCATE holdfast.account, holdfast.balance, holdfast.movement, holdfast.operation,
       holdfast.hold, holdfast.credit_grant, holdfast.allocation, holdfast.checkpoint,
       holdfast.horizon;
     DO $$
     DECLARE
       month text;
     BEGIN
       FOR month IN
         SELECT relname FROM pg_class JOIN pg_inherits ON inhrelid = pg_class.oid
         WHERE inhparent = 'holdfast.movement'::regclass
           AND relname < 'movement_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMM')
       LOOP
         EXECUTE format('DROP TABLE holdfast.%I', month);
       END LOOP;
     END $$`,
  )
}

/** Runs statements past every trigger: what somebody with all rights could do. */
export async function asSuperuser(observer: pg.Pool, statements: string): Promise<void> {
  const client = await observer.connect()
  try {
    await client.query(`BEGIN; SET LOCAL session_replication_role = replica; ${statements}; COMMIT`)
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

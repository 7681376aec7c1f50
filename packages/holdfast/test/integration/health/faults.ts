import type pg from 'pg'
import { createHoldfast } from '../../../src/index.ts'
import type { HealthCode, HealthOptions } from '../../../src/health/index.ts'
import { grants, migrate } from '../../../src/schema/index.ts'
import type { HealthyPlace } from './healthy-place.ts'

/** One thing that goes wrong with a healthy place. */
export interface Fault {
  readonly code: HealthCode
  readonly object: string | RegExp
  /** SQL, or something that only a process can do; what it gives is called when the test ends. */
  readonly stage: string | ((place: HealthyPlace) => Promise<void>)
  /** What the finding's sentence must say: the value that was measured, or where it was set. */
  readonly says?: RegExp
  /** Does what the fix says, where that is no SQL. */
  readonly follow?: (place: HealthyPlace) => Promise<unknown>
  /** Afterwards: what the fault needed and the fix rightly left. */
  readonly tidy?: string
  readonly options?: HealthOptions
}

const reload = 'SELECT pg_catalog.pg_reload_conf()'
const repair = (place: HealthyPlace): Promise<unknown> => migrate(place.driver, { repair: true })
const upgrade = (place: HealthyPlace): Promise<unknown> => migrate(place.driver)

const inSchema: Record<string, Fault> = {
  'a function that lost SECURITY DEFINER': {
    stage: 'ALTER FUNCTION holdfast.sweep(integer) SECURITY INVOKER',
    code: 'function-security',
    object: 'function sweep(integer)',
    follow: repair,
  },
  'a function that was changed': {
    stage: "ALTER FUNCTION holdfast.sweep(integer) SET work_mem = '1MB'",
    code: 'function-changed',
    object: 'function sweep(integer)',
    follow: repair,
  },
  'a function of another role': {
    stage: 'CREATE ROLE stranger; ALTER FUNCTION holdfast.sweep(integer) OWNER TO stranger',
    code: 'object-owner',
    object: 'function sweep(integer)',
    says: /^belongs to stranger instead of postgres:/,
    tidy: 'DROP ROLE stranger',
  },
  'a missing column': {
    stage: 'ALTER TABLE holdfast.work DROP COLUMN last_error',
    code: 'column-missing',
    object: 'column work.last_error',
  },
  'a missing index': {
    stage: 'DROP INDEX holdfast.hold_due',
    code: 'index-missing',
    object: 'index hold.hold_due',
  },
  'a trigger that is turned off': {
    stage: 'ALTER TABLE ONLY holdfast.movement DISABLE TRIGGER movement_append_only',
    code: 'trigger-disabled',
    object: 'trigger movement.movement_append_only',
  },
  'row security on a table': {
    stage: 'ALTER TABLE holdfast.balance ENABLE ROW LEVEL SECURITY',
    code: 'table-changed',
    object: 'table balance',
  },
  // Offered by rate-limit.md: a note, and no finding of `inspect`.
  'rate limits that a crash empties': {
    stage: 'ALTER TABLE holdfast.rate_limit SET UNLOGGED',
    code: 'rate-limit-unlogged',
    object: 'table rate_limit',
    says: /^is UNLOGGED: after a crash .* begin anew\./,
  },
  'an unlogged table that holds balances': {
    stage: 'ALTER TABLE holdfast.once SET UNLOGGED',
    code: 'table-changed',
    object: 'table once',
  },
  'a file that was not applied': {
    stage: "DELETE FROM holdfast.installed_file WHERE name = 'app/sweep'",
    code: 'file-missing',
    object: 'app/sweep',
    follow: upgrade,
  },
  'a file of a later version': {
    stage:
      "UPDATE holdfast.installed_file SET checksum = '', version = '99.0.0' WHERE name = 'app/sweep'",
    code: 'file-newer',
    object: 'app/sweep',
    async follow(place) {
      await place.run("DELETE FROM holdfast.installed_file WHERE name = 'app/sweep'")
      await upgrade(place)
    },
  },
  'months to come without a partition': {
    stage: `DO $$ DECLARE month text; BEGIN
      FOR month IN SELECT relname FROM pg_class JOIN pg_inherits ON inhrelid = pg_class.oid
        WHERE inhparent = 'holdfast.movement'::regclass
          AND relname > 'movement_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMM')
          AND relname <> 'movement_default'
      LOOP EXECUTE format('DROP TABLE holdfast.%I', month); END LOOP;
    END $$`,
    code: 'months-missing',
    object: 'table movement',
    follow: ({ driver }) => createHoldfast(driver).ledger.maintain(),
  },
  'a table that everyone may read': {
    stage: 'GRANT SELECT ON holdfast.balance TO PUBLIC',
    code: 'public-privilege',
    object: 'table balance',
  },
}

const ofRole: Record<string, Fault> = {
  'a privilege that is missing': {
    stage: 'REVOKE EXECUTE ON FUNCTION holdfast.sweep(integer) FROM app',
    code: 'role-privilege-missing',
    object: 'function sweep',
  },
  'a privilege too many': {
    stage: 'GRANT UPDATE ON holdfast.balance TO app',
    code: 'role-privilege-extra',
    object: 'table balance',
  },
  'a role that is a member of the owner': {
    stage: 'GRANT postgres TO app',
    code: 'role-superuser',
    object: 'role app',
    says: /^is a member of postgres, a superuser,/,
  },
  'a role that owns a table': {
    stage: 'ALTER TABLE holdfast.work OWNER TO app',
    code: 'role-owner',
    object: 'role app',
    says: /^owns table work:/,
    async follow(place) {
      await place.run('ALTER TABLE holdfast.work OWNER TO postgres')
      await place.pool.query(grants({ role: 'app' }))
    },
  },
  'a role that is not there': {
    stage: 'SELECT 1',
    code: 'role-missing',
    object: 'role nobody',
    options: { role: 'nobody' },
    async follow(place) {
      await place.run(`CREATE ROLE nobody;
        ALTER ROLE nobody SET statement_timeout = '30s';
        ALTER ROLE nobody SET lock_timeout = '5s';
        ALTER ROLE nobody SET idle_in_transaction_session_timeout = '1min'`)
      await place.pool.query(grants({ role: 'nobody' }))
    },
    tidy: 'DROP OWNED BY nobody; DROP ROLE nobody',
  },
  'a role that is a superuser': {
    stage: 'ALTER ROLE app SUPERUSER',
    code: 'role-superuser',
    object: 'role app',
    // No statement: whoever runs one on the only superuser of a server has none left.
    follow: (place) => place.run('ALTER ROLE app NOSUPERUSER'),
  },
  'a role that may write everything': {
    stage: 'GRANT pg_write_all_data TO app',
    code: 'role-writes-all',
    object: 'role app',
    says: /pg_write_all_data/,
  },
  'a role that may read everything': {
    stage: 'GRANT pg_read_all_data TO app',
    code: 'role-reads-all',
    object: 'role app',
    says: /pg_read_all_data/,
  },
  'a role that may read the files of the server through another': {
    stage: 'CREATE ROLE readers; GRANT pg_read_server_files TO readers; GRANT readers TO app',
    code: 'role-reads-all',
    object: 'role app',
    tidy: 'DROP ROLE readers',
  },
  'a role that can become a superuser': {
    stage: 'CREATE ROLE admins SUPERUSER; GRANT admins TO app',
    code: 'role-superuser',
    object: 'role app',
    says: /member of admins, a superuser/,
    tidy: 'DROP ROLE admins',
  },
  'a role that can become one that makes roles': {
    stage: 'CREATE ROLE makers CREATEROLE; GRANT makers TO app',
    code: 'role-creates-roles',
    object: 'role app',
    tidy: 'DROP ROLE makers',
  },
  'a role that may write everything through another': {
    stage: 'CREATE ROLE writers; GRANT pg_write_all_data TO writers; GRANT writers TO app',
    code: 'role-writes-all',
    object: 'role app',
    tidy: 'DROP ROLE writers',
  },
}

const ofSettings: Record<string, Fault> = {
  'REPEATABLE READ by default, for the role': {
    stage: "ALTER ROLE app SET default_transaction_isolation = 'repeatable read'",
    code: 'isolation-default',
    object: 'setting default_transaction_isolation',
    says: /^is repeatable read \(set for the role\): locks\.acquire and .* guard, tryGuard and once name it/,
  },
  'SERIALIZABLE by default, for the role in this database': {
    stage: "ALTER ROLE app IN DATABASE DB SET default_transaction_isolation = 'serializable'",
    code: 'isolation-default',
    object: 'setting default_transaction_isolation',
    says: /^is serializable \(set for the role in this database\)/,
  },
  'REPEATABLE READ by default, for the database': {
    stage: "ALTER DATABASE DB SET default_transaction_isolation = 'repeatable read'",
    code: 'isolation-default',
    object: 'setting default_transaction_isolation',
    says: /set for the database/,
  },
  'REPEATABLE READ by default, for all roles': {
    stage: "ALTER ROLE ALL SET default_transaction_isolation = 'repeatable read'",
    code: 'isolation-default',
    object: 'setting default_transaction_isolation',
    says: /set for all roles/,
  },
  'SERIALIZABLE by default, for the server': {
    stage: `ALTER SYSTEM SET default_transaction_isolation = 'serializable'; ${reload}`,
    code: 'isolation-default',
    object: 'setting default_transaction_isolation',
    says: /set in the server's configuration/,
  },
  'a role that is read-only by default': {
    stage: 'ALTER ROLE app SET default_transaction_read_only = true',
    code: 'read-only-default',
    object: 'setting default_transaction_read_only',
  },
  'a database that is read-only by default': {
    stage: 'ALTER DATABASE DB SET default_transaction_read_only = on',
    code: 'read-only-default',
    object: 'setting default_transaction_read_only',
    says: /set for the database/,
  },
  'triggers that do not fire for the role': {
    stage: 'ALTER ROLE app SET session_replication_role = replica',
    code: 'triggers-off',
    object: 'setting session_replication_role',
  },
  'commits that are not durable': {
    stage: 'ALTER ROLE app SET synchronous_commit = off',
    code: 'commits-not-durable',
    object: 'setting synchronous_commit',
  },
  // For the database, so that the connections of this test do not wait for a standby that is not there.
  'commits that do not wait for synchronous standbys': {
    stage: `ALTER DATABASE DB SET synchronous_commit = local;
      ALTER SYSTEM SET synchronous_standby_names = 'nobody'; ${reload}`,
    code: 'commits-not-replicated',
    object: 'setting synchronous_commit',
    tidy: `ALTER SYSTEM RESET synchronous_standby_names; ${reload}`,
  },
  'no statement_timeout': {
    stage: 'ALTER ROLE app RESET statement_timeout',
    code: 'statement-timeout-unset',
    object: 'setting statement_timeout',
    says: /^is 0 \(the server's default\)/,
  },
  'no lock_timeout': {
    stage: 'ALTER ROLE app SET lock_timeout = 0',
    code: 'lock-timeout-unset',
    object: 'setting lock_timeout',
    says: /your own statements, claims and lease guards wait .* ledger in a transaction of yours\. .* limit of its own \(10 s/,
  },
  'no idle_in_transaction_session_timeout': {
    stage: 'ALTER ROLE app RESET idle_in_transaction_session_timeout',
    code: 'idle-timeout-unset',
    object: 'setting idle_in_transaction_session_timeout',
  },
  'a lock_timeout that statement_timeout makes useless': {
    stage: "ALTER ROLE app SET lock_timeout = '30s'",
    code: 'lock-timeout-high',
    object: 'setting lock_timeout',
    says: /statement_timeout \(30 s\) comes first/,
  },
  'a lock_timeout of ten minutes': {
    stage: "ALTER ROLE app SET lock_timeout = '10min'",
    code: 'lock-timeout-high',
    object: 'setting lock_timeout',
  },
  'a deadlock_timeout that searches all the time': {
    stage: "ALTER ROLE app SET deadlock_timeout = '50ms'",
    code: 'deadlock-timeout-odd',
    object: 'setting deadlock_timeout',
    says: /^is 50ms/,
  },
  'a deadlock_timeout of a minute': {
    stage: `ALTER SYSTEM SET deadlock_timeout = '1min'; ${reload}`,
    code: 'deadlock-timeout-odd',
    object: 'setting deadlock_timeout',
    says: /^is 60000 /,
  },
  'statements that nobody can see': {
    stage: 'ALTER ROLE app SET track_activities = off',
    code: 'activity-hidden',
    object: 'setting track_activities',
  },
  'fsync turned off': {
    stage: `ALTER SYSTEM SET fsync = off; ${reload}`,
    code: 'fsync-off',
    object: 'setting fsync',
  },
  'full_page_writes turned off': {
    stage: `ALTER SYSTEM SET full_page_writes = off; ${reload}`,
    code: 'full-page-writes-off',
    object: 'setting full_page_writes',
  },
  'autovacuum turned off': {
    stage: `ALTER SYSTEM SET autovacuum = off; ${reload}`,
    code: 'autovacuum-off',
    object: 'setting autovacuum',
  },
  'autovacuum blind': {
    stage: `ALTER SYSTEM SET track_counts = off; ${reload}`,
    code: 'autovacuum-off',
    object: 'setting track_counts',
  },
}

const outbox = { claims: [{ table: 'outbox' }] } as const
const makeOutbox = `CREATE TABLE outbox (id int PRIMARY KEY, status text NOT NULL, claim_token uuid,
  lease_until timestamptz)`
const byId = "CREATE INDEX ON outbox (id) WHERE status = 'pending'"
const byLease = "CREATE INDEX ON outbox (lease_until) WHERE status = 'claimed'"

const ofWork: Record<string, Fault> = {
  'a table without autovacuum': {
    stage: 'ALTER TABLE holdfast.balance SET (autovacuum_enabled = off)',
    code: 'autovacuum-off',
    object: 'table balance',
  },
  'a replication slot that nobody reads': {
    stage: "SELECT pg_create_physical_replication_slot('left', true)",
    code: 'slot-unused',
    object: 'replication slot left',
  },
  // S24: dropping it would end the move for good.
  'the replication slot of a move that has stopped': {
    stage: `SELECT pg_create_physical_replication_slot('holdfast_move_${'0a'.repeat(16)}', true)`,
    code: 'slot-unused',
    object: `replication slot holdfast_move_${'0a'.repeat(16)}`,
    says: /^belongs to a move of buckets that has stopped/,
    // As undoing it does.
    follow: ({ run }) => run(`SELECT pg_drop_replication_slot('holdfast_move_${'0a'.repeat(16)}')`),
  },
  'a prepared transaction that was left': {
    async stage({ pool }) {
      const client = await pool.connect()
      await client.query("BEGIN; CREATE TABLE half (); PREPARE TRANSACTION 'le''ft'")
      client.release()
    },
    code: 'prepared-transaction',
    object: "prepared transaction le'ft",
    options: { limits: { idleMs: 0 } },
  },
  'a session that is idle in its transaction': {
    stage: ({ pool }) => left(pool, 'SELECT 1'),
    code: 'idle-in-transaction',
    object: /^session \d+$/,
    says: /^of postgres, left has done nothing for \d+ ms/,
    options: { limits: { idleMs: 0 } },
  },
  'a transaction that takes long': {
    stage: ({ pool }) => left(pool, 'SELECT pg_sleep(300)', false),
    code: 'long-transaction',
    object: /^session \d+$/,
    options: { limits: { transactionMs: 0 } },
  },
  'a claim index that is missing': {
    stage: `${makeOutbox}; ${byId}`,
    code: 'index-missing',
    object: 'table outbox',
    options: outbox,
    tidy: 'DROP TABLE outbox',
  },
  'a claim index of another state': {
    stage: `${makeOutbox}; ${byLease}; ${byId.replace('pending', 'ready')}`,
    code: 'index-missing',
    object: 'table outbox',
    options: outbox,
    tidy: 'DROP TABLE outbox',
  },
  'a claimed table without a column': {
    stage: `${makeOutbox}; ${byId}; ${byLease}; ALTER TABLE outbox DROP COLUMN claim_token`,
    code: 'column-missing',
    object: 'column outbox.claim_token',
    options: outbox,
    follow: (place) => place.run('ALTER TABLE outbox ADD COLUMN claim_token uuid'),
    tidy: 'DROP TABLE outbox',
  },
  'claims of a table that nobody takes up': {
    stage: `${makeOutbox}; ${byId}; ${byLease};
      INSERT INTO outbox VALUES (1, 'claimed', gen_random_uuid(), now() - interval '1 hour')`,
    code: 'claims-stranded',
    object: 'table outbox',
    says: /\(1\) whose claim ended 60 min ago/,
    options: outbox,
    follow: ({ driver }) => createHoldfast(driver).claims({ table: 'outbox' }).recover(),
    tidy: 'DROP TABLE outbox',
  },
  'work that nobody takes up': {
    async stage({ driver, pool }) {
      const queue = createHoldfast(driver).work({ queue: 'mail' })
      await queue.enqueue({ payload: 1 })
      await queue.claim(1)
      await pool.query("UPDATE holdfast.work SET lease_until = now() - interval '1 hour'")
    },
    code: 'claims-stranded',
    object: 'table work',
    follow: ({ driver }) => createHoldfast(driver).work({ queue: 'mail' }).recover(),
  },
  'holds that nobody sweeps': {
    async stage({ driver, pool }) {
      const quota = createHoldfast(driver).quota({ name: 'calls', limit: 10, per: 'lifetime' })
      await quota.hold('user', 1, { operationId: 'one', ttl: '1 h' })
      await pool.query(`UPDATE holdfast.hold SET expires_at = now() - interval '1 hour';
        UPDATE holdfast.balance SET due_at = now() - interval '1 hour'`)
    },
    code: 'holds-overdue',
    object: 'holds',
    says: /\(1\), the oldest for 60 min/,
  },
  'a tick whose process is gone': {
    stage: `INSERT INTO holdfast.schedule (bucket, name, last_tick) VALUES (0, 'nightly', now());
      INSERT INTO holdfast.tick (bucket, schedule, at, manual, state, attempt, token, holder, lease_until, started_at)
      VALUES (0, 'nightly', now(), false, 0, 1, gen_random_uuid(), 'gone', now() - interval '1 hour', now())`,
    code: 'tick-stuck',
    object: 'schedule nightly',
    says: /lease ended 60 min ago/,
    follow: (place) =>
      place.run(
        "UPDATE holdfast.tick SET state = 4, lease_until = NULL WHERE schedule = 'nightly'",
      ),
    tidy: 'DELETE FROM holdfast.tick; DELETE FROM holdfast.schedule',
  },
}

/** A session with a transaction that nobody ends. */
async function left(pool: pg.Pool, statement: string, wait = true): Promise<void> {
  const client = await pool.connect()
  client.on('error', () => client.release(true))
  await client.query("SET application_name = 'left'; BEGIN")
  const running = client.query(statement)
  running.catch(() => undefined)
  if (wait) await running
}

/** Every fault that can be staged in one database of one server. */
export const faults: Readonly<Record<string, Fault>> = {
  ...inSchema,
  ...ofRole,
  ...ofSettings,
  ...ofWork,
}

import { readFile } from 'node:fs/promises'
import { waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type BreakableWire,
  breakableWire,
} from '../../../packages/holdfast/test/support/breakable-wire.ts'
import {
  type TestDatabase,
  testDatabase,
} from '../../../packages/holdfast/test/support/database.ts'
import { type Service, startService } from '../demo/start-service.ts'
import { fromSource } from './from-source.ts'

/** The connection breaks during COMMIT, before or after it took effect. */
let database: TestDatabase
let pool: pg.Pool
let wire: BreakableWire
let service: Service

const commitGate = 4711

beforeAll(async () => {
  database = await testDatabase()
  pool = new pg.Pool({ connectionString: database.directUrl })
  await pool.query(await readFile(new URL('../prisma/schema.sql', import.meta.url), 'utf8'))
  await pool.query(`
    CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_advisory_xact_lock_shared(${commitGate}); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON user_image DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION wait_at_commit()`)
  wire = await breakableWire(database.url)
  service = await startService(wire.url, { NODE_OPTIONS: `--import=${fromSource}` })
})

afterAll(async () => {
  await service?.stop()
  await wire?.[Symbol.asyncDispose]()
  await pool?.end()
})

/** Uploads, and calls `strike` with the backend that hangs in COMMIT. */
async function upload(
  user: string,
  strike: (pid: number, openGate: () => Promise<void>) => Promise<void>,
): Promise<{ answer: Response; saved: number }> {
  const gate = await pool.connect()
  await gate.query('SELECT pg_advisory_lock($1)', [commitGate])
  const uploading = fetch(`${service.url}/users/${user}/images`, {
    method: 'POST',
    body: '{"byteSize":1}',
  })
  const pid = await waitUntil('COMMIT waits at the gate', async () => {
    const { rows } = await pool.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event = 'advisory' AND query = 'COMMIT'`,
    )
    return rows[0]?.pid
  })
  const openGate = async (): Promise<void> => {
    await gate.query('SELECT pg_advisory_unlock($1)', [commitGate])
  }
  await strike(pid, openGate)
  const answer = await uploading
  gate.release(true)
  const { rows } = await pool.query('SELECT FROM user_image WHERE user_id = $1', [user])
  return { answer, saved: rows.length }
}

test('an upload that was saved is answered as saved', async () => {
  const { answer, saved } = await upload('dan', async (_, openGate) => {
    wire.hold()
    await openGate()
    await waitUntil('the commit is visible', async () => {
      const { rows } = await pool.query("SELECT FROM user_image WHERE user_id = 'dan'")
      return rows.length > 0 || undefined
    })
    wire.cut()
    wire.release()
  })
  expect({ status: answer.status, saved }).toEqual({ status: 201, saved: 1 })
})

test('an upload that was not saved is answered with 503', async () => {
  const { answer, saved } = await upload('eve', async (pid, openGate) => {
    await pool.query('SELECT pg_terminate_backend($1)', [pid])
    await openGate()
  })
  expect({ status: answer.status, saved }).toEqual({ status: 503, saved: 0 })
})

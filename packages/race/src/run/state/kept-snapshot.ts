/**
 * The snapshot of `state: 'restore'` is also kept in the database, in a schema of its own, as long as there may be
 * something to put back. Where a process dies that cannot help it (SIGKILL, a lost machine), the next exploration finds it.
 */
import type { Client } from 'pg'
import { sqlstateOf } from '../answer/error-layers.ts'
import { RestoreError } from './restore-error.ts'
import { keptIn, putBack, type Saved, type SavedTable, type Sequence } from './snapshot.ts'

const variable = 'HOLDFAST_RACE_LEFTOVER'

/** Keeps the snapshot until it is forgotten; false for a role that may not create a schema, and goes without. */
export async function keep(client: Client, { tables, sequences }: Saved): Promise<boolean> {
  await client.query('BEGIN')
  try {
    await client.query(`CREATE SCHEMA ${keptIn}`)
    await client.query(`CREATE TABLE ${keptIn}.snapshot (at timestamptz, sequences json)`)
    await client.query(`CREATE TABLE ${keptIn}.tables (place int, shape json, rows text[])`)
    await client.query(`INSERT INTO ${keptIn}.snapshot VALUES (now(), $1)`, [
      JSON.stringify(sequences),
    ])
    for (const [place, { rows, ...shape }] of tables.entries()) {
      const values = [place, JSON.stringify(shape), rows]
      await client.query(`INSERT INTO ${keptIn}.tables VALUES ($1, $2, $3)`, values)
    }
    await client.query('COMMIT')
    return true
  } catch (error) {
    await client.query('ROLLBACK')
    if (sqlstateOf(error) !== '42501') throw error
    return false
  }
}

/** How to get rows back that a table refuses. */
export function wayBack({ table, constraint }: RestoreError): string {
  const obstacle = constraint === undefined ? 'what refuses them' : `the constraint ${constraint}`
  return (
    `The rows of all tables are kept as text in ${keptIn}.tables. To put them back, drop ${obstacle} of ${table}, ` +
    `run once more with ${variable}=restore in the environment, and add it again.`
  )
}

/** Everything was put back. */
export async function forget(client: Client): Promise<void> {
  await client.query(`SET client_min_messages = error; DROP SCHEMA IF EXISTS ${keptIn} CASCADE`)
}

/** What an exploration left that was cut off: whoever runs the next one says what becomes of it. */
export async function settleLeftover(client: Client): Promise<void> {
  const found = await client.query<{ kept: boolean }>(
    'SELECT pg_catalog.to_regclass($1) IS NOT NULL AS kept',
    [`${keptIn}.snapshot`],
  )
  if (found.rows[0]?.kept !== true) return
  const wanted = process.env[variable] ?? ''
  if (!['', 'restore', 'keep'].includes(wanted))
    throw new Error(`${variable} must be restore or keep`)
  const { rows } = await client.query<{ at: Date; sequences: Sequence[] }>(
    `SELECT at, sequences FROM ${keptIn}.snapshot`,
  )
  if (wanted === '') {
    const at = rows[0]?.at.toISOString().replace('T', ' ').slice(0, 16)
    throw new Error(
      `An exploration with state: 'restore', or a hunt, was cut off on ${at} UTC, before it had put the rows of this database back. ` +
        `Run once more with ${variable}=restore in the environment to put them back as they were then, ` +
        `or with ${variable}=keep to go on with what is there now.`,
    )
  }
  if (wanted === 'restore') {
    const tables = await client.query<{ shape: Omit<SavedTable, 'rows'>; rows: string[] }>(
      `SELECT shape, rows FROM ${keptIn}.tables ORDER BY place`,
    )
    try {
      await putBack(client, {
        tables: tables.rows.map(({ shape, rows: saved }) => ({ ...shape, rows: saved })),
        sequences: rows[0]?.sequences ?? [],
      })
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause)
      const keep = `With ${variable}=keep they are given up.`
      if (cause instanceof RestoreError) {
        const { table, constraint } = cause
        const text = `${variable}=restore: ${message}. ${wayBack(cause)} ${keep}`
        throw new RestoreError(text, table, constraint, cause)
      }
      throw new Error(
        `${variable}=restore: the rows that were kept cannot be put back: ${message}. ${keep}`,
        { cause },
      )
    }
  }
  await forget(client)
}

import { waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import { Client, type QueryConfig } from 'pg'
import type { Row, Statement } from '../../../src/core/driver.ts'

/** One connection, named by its backend's pid. Ends with the test: `await using`. */
export class Session implements AsyncDisposable {
  readonly pid: number
  readonly #client: Client

  private constructor(client: Client, pid: number) {
    this.#client = client
    this.pid = pid
  }

  static async open(url: string): Promise<Session> {
    const client = new Client({ connectionString: url })
    await client.connect()
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    return new Session(client, Number(rows[0]?.pid))
  }

  /** Several statements in one text are sent as one simple-protocol message; the last one's rows. */
  async rows(text: string, values?: readonly unknown[]): Promise<Row[]> {
    const answer = await this.#client.query<Row>(text, values === undefined ? [] : [...values])
    const results = Array.isArray(answer) ? (answer as (typeof answer)[]) : [answer]
    return results.findLast(({ fields }) => fields.length > 0)?.rows ?? []
  }

  /** By Parse, Bind and Execute also where there are no values, as most clients send. */
  async extended(text: string): Promise<void> {
    const query: QueryConfig & { queryMode: 'extended' } = { text, queryMode: 'extended' }
    await this.#client.query(query)
  }

  /** A statement of ours, as a driver runs it: its first row. */
  async run({ text, values }: Statement): Promise<Row> {
    const [row] = await this.rows(text, values)
    if (row === undefined) throw new Error('a statement of ours always answers with a row')
    return row
  }

  /** The first column of the first row. */
  async value(text: string, values?: readonly unknown[]): Promise<unknown> {
    const [row] = await this.rows(text, values)
    return row === undefined ? undefined : Object.values(row)[0]
  }

  /** Resolves with what the other session waits for, once this one sees it blocked. */
  async seesWaiting(other: Session): Promise<{ event: string; blockers: number[] }> {
    const blockers = await waitUntilBlocked((text, values) => this.rows(text, values), other.pid)
    const event = await waitUntil('the wait shows in pg_stat_activity', async () => {
      const seen = await this.value('SELECT wait_event FROM pg_stat_activity WHERE pid = $1', [
        other.pid,
      ])
      return typeof seen === 'string' && seen !== 'ClientRead' ? seen : undefined
    })
    return { event, blockers }
  }

  /** Resolves once the other session's latest statement began that long ago. */
  async seesRunningFor(other: Session, ms: number): Promise<void> {
    await waitUntil(`backend ${other.pid} began ${ms} ms ago`, async () => {
      const age = await this.value(
        `SELECT extract(epoch FROM clock_timestamp() - query_start) * 1000
         FROM pg_stat_activity WHERE pid = $1`,
        [other.pid],
      )
      return Number(age) >= ms ? true : undefined
    })
  }

  /** The advisory locks a session has been granted, as `pg_locks` shows them, by number. */
  async advisoryLocksOf(other: Session): Promise<string[]> {
    const rows = await this.rows(
      `SELECT objsubid || ':' || ((classid::int8 << 32) | objid::int8) AS lock
       FROM pg_locks WHERE pid = $1 AND locktype = 'advisory' AND granted
       ORDER BY objsubid, (classid::int8 << 32) | objid::int8`,
      [other.pid],
    )
    return rows.map((row) => String(row['lock']))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end()
  }
}

/** The SQLSTATE a promise rejects with, or `undefined` if it resolves. */
export async function sqlStateFrom(promise: Promise<unknown>): Promise<string | undefined> {
  try {
    await promise
    return undefined
  } catch (error) {
    return String((error as { code?: unknown }).code)
  }
}

import { onTestFinished } from 'vitest'
import { createHoldfast, type Holdfast } from '../../../../src/mysql.ts'
import { fresh } from '../support/caller-transaction.ts'
import type { InnodbPlace } from '../support/each-innodb.ts'
import type { Handle, InnodbClient } from '../support/innodb-clients.ts'

export interface JobRow {
  readonly id: number
  readonly status: string
  readonly attempts: number
  readonly claim_token: string | null
}

/** What most tables of jobs have. */
export const usual = {
  id: 'INT NOT NULL PRIMARY KEY',
  tenant: "VARCHAR(20) NOT NULL DEFAULT 'one'",
  status: "VARCHAR(10) NOT NULL DEFAULT 'pending'",
  claim_token: 'CHAR(36)',
  lease_until: 'TIMESTAMP(6) NULL',
  attempts: 'INT UNSIGNED NOT NULL DEFAULT 0',
  run_at: 'TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)',
  last_error: 'VARCHAR(20)',
} as const

const usualIndexes: readonly string[] = [
  'KEY due (status, run_at, id)',
  'KEY leases (status, lease_until)',
]

/** A table of its own for each test, and what is asked of it. */
export class JobTable {
  readonly name = `job_${fresh().replaceAll('-', '')}`
  readonly #place: InnodbPlace
  /** The columns that the table has. */
  readonly options = {
    table: this.name,
    columns: { attempts: 'attempts', runAt: 'run_at', error: 'last_error' },
  } as const

  constructor(place: InnodbPlace) {
    this.#place = place
  }

  static async make(
    place: InnodbPlace,
    rows = 0,
    columns: Readonly<Record<string, string>> = usual,
    indexes: readonly string[] = usualIndexes,
  ): Promise<JobTable> {
    const table = new JobTable(place)
    const lines = [...Object.entries(columns).map(([name, type]) => `${name} ${type}`), ...indexes]
    await table.run(`CREATE TABLE ${table.name} (${lines.join(', ')}) ENGINE=InnoDB`)
    await table.add(...Array.from({ length: rows }, (_, at) => at + 1))
    return table
  }

  async run(text: string, ...values: unknown[]): Promise<Record<string, unknown>[]> {
    await using session = await this.#place.session()
    return await session.rows(text, values)
  }

  /** Due one after the other, by their number. */
  async add(...ids: readonly number[]): Promise<void> {
    if (ids.length === 0) return
    const rows = ids.map((id) => `(${id}, NOW(6) - INTERVAL 1 HOUR + INTERVAL ${id} SECOND)`)
    await this.run(`INSERT INTO ${this.name} (id, run_at) VALUES ${rows.join(', ')}`)
  }

  async states(): Promise<string> {
    const rows = await this.run(`SELECT status FROM ${this.name} ORDER BY id`)
    return rows.map(({ status }) => String(status)).join()
  }

  async expireLeases(): Promise<void> {
    await this.run(
      `UPDATE ${this.name} SET lease_until = NOW(6) - INTERVAL 1 SECOND WHERE status = 'claimed'`,
    )
  }
}

/** A pool that ends after the connections of the test were given back. */
export function startOn(
  place: InnodbPlace,
  size = 8,
): { readonly pool: InnodbClient; readonly hf: Holdfast<Handle> } {
  const pool = place.pool(size)
  onTestFinished(async () => await pool[Symbol.asyncDispose]())
  return { pool, hf: createHoldfast(pool.driver) }
}

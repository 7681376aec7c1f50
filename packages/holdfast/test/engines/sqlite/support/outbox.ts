import {
  type Claims,
  type ClaimsOptions,
  createHoldfast,
  type Holdfast,
  migrate,
} from '../../../../src/sqlite.ts'
import type { SqlitePlace } from './each-sqlite.ts'
import type { Handle } from './sqlite-clients.ts'

/** A row of the table of these tests. */
export interface OutboxRow {
  readonly id: number
  readonly tenant: string
  readonly state: string
  readonly tries: number
  readonly token: string | null
  readonly until: string | number | null
  readonly due: string | number
  readonly why: string | null
}

/** How its moments are declared, and what is in the column of moments that are due. */
export const outboxTable = (moment = 'TEXT', due = 'CURRENT_TIMESTAMP'): readonly string[] => [
  `CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL DEFAULT 'a',
    state TEXT NOT NULL DEFAULT 'new',
    token TEXT,
    until ${moment},
    tries INTEGER NOT NULL DEFAULT 0,
    due ${moment} NOT NULL DEFAULT (${due}),
    why TEXT,
    owner TEXT,
    ended ${moment}
  )`,
  `CREATE INDEX outbox_new ON outbox (due, id) WHERE state = 'new'`,
  `CREATE INDEX outbox_busy ON outbox (until) WHERE state = 'busy'`,
]

/** Claims over it. */
export const outbox: ClaimsOptions = {
  table: 'outbox',
  columns: {
    status: 'state',
    token: 'token',
    leaseUntil: 'until',
    attempts: 'tries',
    runAt: 'due',
    error: 'why',
    holder: 'owner',
    finishedAt: 'ended',
  },
  values: { pending: 'new', claimed: 'busy' },
  maxAttempts: 3,
}

export interface Outbox {
  readonly hf: Holdfast<Handle>
  readonly claims: Claims<Handle, OutboxRow>
}

/** A Holdfast on connections of its own, with claims over the table. */
export async function openOutbox(
  place: SqlitePlace,
  more: Partial<ClaimsOptions> = {},
): Promise<Outbox> {
  const driver = place.driver()
  await migrate(driver)
  const hf = createHoldfast(driver)
  return { hf, claims: hf.claims<OutboxRow>({ ...outbox, ...more }) }
}

export function fill(place: SqlitePlace, count: number, tenant = 'a'): void {
  const db = place.open()
  for (let at = 0; at < count; at += 1)
    db.prepare('INSERT INTO outbox (tenant) VALUES (?)').run(tenant)
}

export function rowsOf(place: SqlitePlace): readonly OutboxRow[] {
  return place.open().prepare('SELECT * FROM outbox ORDER BY id').all() as OutboxRow[]
}

/** As if their holders had not been heard of for longer than their leases. */
export function expireClaims(place: SqlitePlace): void {
  place
    .open()
    .exec(
      "UPDATE outbox SET until = IIF(typeof(until) = 'text', '2020-01-01 00:00:00.000', 1577836800000) WHERE state = 'busy'",
    )
}

export function ids(claims: readonly { readonly row: OutboxRow }[]): readonly number[] {
  return claims.map(({ row }) => row.id)
}

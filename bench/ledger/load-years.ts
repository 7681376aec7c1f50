import { withClient } from '@holdfast/testkit'
import type { QueryResult } from 'pg'
import { book, limit } from './open-ledger.ts'
import { deepKeys, each, firstRandomBucket, months, type Years } from './years.ts'

/** As the last movement of an account has it, and the id of its operation: by bucket random or of version 7. */
const idOf = `CASE WHEN p.bucket >= ${firstRandomBucket} THEN md5(p.key || ':' || m.n)
  ELSE lpad(to_hex((extract(epoch FROM m.at) * 1000)::bigint), 12, '0') || '7' ||
    substr(md5(p.key || ':' || m.n), 14, 3) || '8' || substr(md5(p.key || ':' || m.n), 18, 15) END::uuid`

/**
 * What the accounts did in one month: their movements lie evenly in the time of all months, each account's a little
 * off from the others'. Two statements in the place of one: nearly all accounts have one movement a month or none.
 */
const inMonth = (what: string, into: string): readonly string[] => {
  const at = (x: string): string =>
    `$1::timestamptz + ((${x}) - $3::float8 * p.depth / ${months}) / (p.depth::float8 / ${months}) * ($2::timestamptz - $1::timestamptz)`
  return [
    `${into} SELECT ${what} FROM past p
     CROSS JOIN LATERAL (SELECT ceil($3::float8 * ${each} / ${months} - p.phase) AS before) b
     CROSS JOIN LATERAL (SELECT b.before::bigint + 1 AS n, ${at('b.before + p.phase')} AS at) m
     WHERE p.depth = ${each} AND b.before + p.phase < ($3::float8 + 1) * ${each} / ${months}`,
    `${into} SELECT ${what} FROM past p
     CROSS JOIN LATERAL generate_series(
       ceil($3::float8 * p.depth / ${months} - p.phase)::bigint, ceil(($3::float8 + 1) * p.depth / ${months} - p.phase)::bigint - 1
     ) AS before
     CROSS JOIN LATERAL (SELECT before + 1 AS n, ${at('before + p.phase')} AS at) m
     WHERE p.depth <> ${each}`,
  ]
}

type Progress = (text: string) => void

interface Month {
  readonly number: number
  readonly table: string
  readonly from: Date
  readonly to: Date
}

/**
 * Writes two years straight into the tables, month by month: chains that hold, balances that are their last, an
 * operation for each movement. The server should have `wal_level = minimal`: what a transaction has emptied itself is
 * then not logged. Operations and movements are written at the same time; ids are indexed when all of them are there.
 */
export async function loadYears(url: string, years: Years, progress: Progress): Promise<void> {
  const began = performance.now()
  const step = async (name: string, act: () => Promise<number>): Promise<number> => {
    const from = performance.now()
    const rows = await act()
    const seconds = (performance.now() - from) / 1_000
    const all = ((performance.now() - began) / 60_000).toFixed(1)
    progress(
      `  ${name}: ${rows.toLocaleString('en')} rows in ${seconds.toFixed(1)} s (${all} min so far)`,
    )
    return rows
  }
  const past = await withLoader(url, async (run) => {
    await step('accounts and balances', async () => await loadAccounts(run, years))
    return await makeMonths(run)
  })
  const [operations, movements] = await Promise.all([
    withLoader(url, async (run) => await loadOperations(run, past, step)),
    withLoader(url, async (run) => await loadMovements(run, past, step)),
  ])
  if (operations !== years.movements || movements !== years.movements)
    throw new Error(`${movements} movements and ${operations} operations were loaded`)
  await withLoader(url, async (run) => {
    await run('DROP TABLE past')
    await step('vacuum', async () => {
      for (const table of ['account', 'balance', 'operation'])
        await run(`VACUUM (ANALYZE) ${table}`)
      await run('CHECKPOINT')
      return operations
    })
  })
}

type Run = (text: string, values?: unknown[]) => Promise<QueryResult>
type Step = (name: string, act: () => Promise<number>) => Promise<number>

async function withLoader<T>(url: string, act: (run: Run) => Promise<T>): Promise<T> {
  return await withClient(url, async (client) => {
    for (const setting of [
      'search_path = holdfast',
      'synchronous_commit = off',
      `work_mem = '256MB'`,
      `maintenance_work_mem = '1GB'`,
      'max_parallel_maintenance_workers = 2',
      'timezone = UTC',
      'jit = off',
      // Months refuse to be emptied.
      'session_replication_role = replica',
    ])
      await client.query(`SET ${setting}`)
    return await act(async (text, values) => await client.query(text, values))
  })
}

async function loadAccounts(run: Run, { accounts, deep }: Years): Promise<number> {
  await run('BEGIN')
  await run(
    `CREATE UNLOGGED TABLE past AS
     SELECT bucket_of(key) AS bucket, key_account(key, $1, key) AS id, key, depth, phase
     FROM (
       SELECT 'key-' || n AS key, ${each}::bigint AS depth,
         n * 0.6180339887498949::float8 - floor(n * 0.6180339887498949::float8) AS phase
       FROM generate_series(1, $2::bigint) n
       UNION ALL SELECT key, $3::bigint, 0.5 FROM unnest($4::text[]) AS key
     ) x
     ORDER BY 1, 2`,
    [book, accounts, deep, Object.values(deepKeys)],
  )
  await run('TRUNCATE account, balance')
  await run('DROP INDEX account_by_key')
  const { rowCount } = await run(
    `INSERT INTO account (bucket, id, book, key, scope, opened_at)
     SELECT bucket, id, $1, key, key, now() - interval '${months + 1} months' FROM past`,
    [book],
  )
  await run('CREATE INDEX account_by_key ON account (book, key, window_start)')
  // No movement of an account is later than the first moment of this month.
  await run(
    `INSERT INTO balance (bucket, account, debited, allowance, seq, moved_at)
     SELECT bucket, id, depth, $1, depth, date_trunc('month', now()) FROM past`,
    [limit],
  )
  await run('COMMIT')
  await run('ANALYZE past')
  return rowCount ?? 0
}

async function makeMonths(run: Run): Promise<readonly Month[]> {
  const { rows } = await run(
    `SELECT ($1 - back)::integer AS number, 'movement_' || to_char(first, 'YYYYMM') AS table, first AS from,
       first + interval '1 month' AS to, make_month(first::date)
     FROM generate_series(1, $1::integer) AS back,
       LATERAL (SELECT date_trunc('month', now()) - make_interval(months => back) AS first) x
     ORDER BY 1`,
    [months],
  )
  return rows as Month[]
}

async function fill(run: Run, { number, from, to }: Month, texts: readonly string[]) {
  let rows = 0
  for (const text of texts) rows += (await run(text, [from, to, number])).rowCount ?? 0
  return rows
}

async function loadOperations(run: Run, past: readonly Month[], step: Step): Promise<number> {
  const texts = inMonth(
    `p.bucket, p.id, ${idOf}, 0, 2, p.id, 1, m.n, m.at`,
    'INSERT INTO operation (bucket, owner, id, line, kind, account, amount, seq, at)',
  )
  await run('BEGIN')
  await run('TRUNCATE operation')
  await run('ALTER TABLE operation DROP CONSTRAINT operation_pkey')
  await run('DROP INDEX operation_by_age')
  let rows = 0
  for (const month of past)
    rows += await step(
      `operations of month ${month.number + 1} of ${months}`,
      async () => await fill(run, month, texts),
    )
  await step('the indexes on operation ids', async () => {
    await run('ALTER TABLE operation ADD PRIMARY KEY (bucket, id, owner, line)')
    await run('CREATE INDEX operation_by_age ON operation USING brin (at)')
    return rows
  })
  await run('COMMIT')
  return rows
}

async function loadMovements(run: Run, past: readonly Month[], step: Step): Promise<number> {
  let rows = 0
  for (const month of past)
    rows += await step(`movements of month ${month.number + 1} of ${months}`, async () => {
      const texts = inMonth(
        `p.bucket, 2, p.id, m.n, m.at, 0, 1, 0, 0, m.n, 0, ${limit}, (${idOf})::text`,
        `INSERT INTO ${month.table} (bucket, kind, account, seq, at, credit, debit, hold, credited, debited, held, allowance, operation_id)`,
      )
      await run('BEGIN')
      await run(`TRUNCATE ${month.table}`)
      const filled = await fill(run, month, texts)
      await run('COMMIT')
      // While it is in memory.
      await run(`VACUUM (ANALYZE) ${month.table}`)
      return filled
    })
  return rows
}

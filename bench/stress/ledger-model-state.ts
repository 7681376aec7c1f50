import type { Pool } from 'pg'
import type { LedgerModel } from '../../packages/holdfast/test/support/ledger-model.ts'

/** Everything that is stored of one scope, a text for each row, in no order. */
export async function storedState(pool: Pool, schema: string, scope: string): Promise<string[]> {
  const name = `a.key || coalesce('@' || ${schema}.micros(a.window_start), '')`
  const us = (column: string): string => `coalesce(${schema}.micros(${column})::text, '-')`
  const number = (column: string): string => `substring(${column} FROM '\\d+$')::bigint`
  const of = (table: string, alias: string): string =>
    `FROM ${schema}.account a JOIN ${schema}.${table} ${alias}
       ON ${alias}.bucket = a.bucket AND ${alias}.account = a.id WHERE a.bucket = $1 AND a.scope = $2`
  const { rows } = await pool.query<{ row: string }>({
    name: `state_${schema}`,
    text: `
      SELECT concat_ws(' ', 'movement', ${name}, m.seq, ${schema}.movement_kind(m.kind),
        ${number('m.operation_id')}, m.credit, m.debit, m.hold, m.credited, m.debited, m.held,
        m.allowance, ${us('m.at')}) AS row ${of('movement', 'm')}
      UNION ALL
      SELECT concat_ws(' ', 'balance', ${name}, ${us('a.window_end')}, b.credited, b.debited, b.held,
        b.allowance, b.seq, ${us('b.moved_at')}, ${us('b.due_at')}, ${us('b.refilled_at')}, b.pinned,
        b.walled, b.granted) ${of('balance', 'b')}
      UNION ALL
      SELECT concat_ws(' ', 'hold', ${name}, ${number('h.operation_id')}, h.amount,
        ('{open,settled,released,expired,settled-late}'::text[])[h.state + 1], coalesce(h.settled, 0),
        ${us('h.expires_at')}, h.made_seq) ${of('hold', 'h')}
      UNION ALL
      SELECT concat_ws(' ', 'grant', ${name}, g.ordinal, g.priority, g.amount, g.remaining, g.lapsed,
        ('{pending,active,expired,voided}'::text[])[g.state + 1], ${us('g.expires_at')})
        ${of('credit_grant', 'g')}`,
    values: [await bucketOf(pool, schema, scope), scope],
  })
  return rows.map(({ row }) => row)
}

async function bucketOf(pool: Pool, schema: string, scope: string): Promise<number> {
  const { rows } = await pool.query<{ bucket: number }>({
    name: `bucket_${schema}`,
    text: `SELECT ${schema}.bucket_of($1) AS bucket`,
    values: [scope],
  })
  return rows[0]?.bucket ?? 0
}

/** The same by the model. */
export function modelState({ accounts }: LedgerModel): string[] {
  const us = (at: number | undefined): string =>
    at === undefined || !Number.isFinite(at) ? '-' : String(at)
  const rows: string[] = []
  const add = (...words: readonly unknown[]): void => void rows.push(words.join(' '))
  for (const [name, moved] of accounts.movements) {
    for (const { kind, operation, credit, debit, hold, after, at } of moved) {
      const { credited, debited, held, allowance, sequence } = after
      const change = [credit, debit, hold, credited, debited, held, allowance]
      add('movement', name, sequence, kind, operation, ...change, us(at))
    }
  }
  for (const one of accounts.all()) {
    const { name, window, credited, debited, held, allowance, sequence } = one
    const times = [us(one.movedAt), us(one.dueAt), us(one.refilledAt)]
    const marks = [one.pinned, one.walled, accounts.grants.has(name)].map((is) => (is ? 't' : 'f'))
    const numbers = [credited, debited, held, allowance, sequence]
    add('balance', name, us(window?.end), ...numbers, ...times, ...marks)
  }
  for (const part of [...accounts.holds.values()].flat()) {
    const { account, operation, amount, state, settled, expiresAt, made } = part
    add('hold', account, operation, amount, state, settled, us(expiresAt), made)
  }
  for (const [name, grants] of accounts.grants) {
    for (const grant of grants.all) {
      const { ordinal, priority, amount, remaining, lapsed, state, rank } = grant
      add('grant', name, ordinal, priority, amount, remaining, lapsed, state, us(rank))
    }
  }
  return rows
}

/** What only one of them has; empty if they are the same. */
export function stateDifference(stored: readonly string[], modelled: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const row of stored) counts.set(row, (counts.get(row) ?? 0) + 1)
  for (const row of modelled) counts.set(row, (counts.get(row) ?? 0) - 1)
  return [...counts]
    .filter(([, count]) => count !== 0)
    .map(([row, count]) => `${count > 0 ? 'ledger' : 'model '} ${row}`)
    .toSorted()
}

import type { Anomaly } from './anomaly.ts'
import { type History, type Moment, nameOf } from './history.ts'
import type { Equality } from './statement.ts'
import { keyOf, list, ref, subjectName, tableOf, variable } from './words.ts'

/** One way out. */
export interface Fix {
  /** Instead of the one before it, or together with it. */
  readonly joint: 'or' | 'and'
  readonly text: string
  /** SQL or TypeScript, where a line says more than a sentence. */
  readonly code?: string
}

/** The ways out, the one to try first at the front. */
export function fixesOf(anomaly: Anomaly, history: History): Fix[] {
  return [...lockFixes(anomaly), ...fixesByName(anomaly, history)]
}

function way(text: string, code?: string, joint: Fix['joint'] = 'or'): Fix {
  return { joint, text, ...(code === undefined ? {} : { code }) }
}

/** If there is a lock already, putting it right comes first. */
function lockFixes({ lockFault, read, write, commit }: Anomaly): Fix[] {
  if (lockFault === undefined || read === undefined || commit === undefined) return []
  const { kind, lock } = lockFault
  if (kind === 'too-late') {
    return [
      way(
        `Move the lock (${lock.number}) before the read (${read.number}), or decide on what is read under it: everything read before a lock may be stale.`,
      ),
    ]
  }
  if (kind === 'released') {
    const until = write === undefined ? '' : ` to (${write.number})`
    return [
      way(
        `Put BEGIN before the lock and COMMIT after the write: one transaction from (${lock.number})${until}, on one connection.`,
      ),
    ]
  }
  if (kind === 'one-sided') {
    const without = lock.step.flow === read.step.flow ? commit.who : read.who
    return [way(`Let ${without} take the lock that ${ref(lock)} takes, before it reads.`)]
  }
  if (kind === 'different') return [way('Make both sides lock the same key, or the same row.')]
  return [
    way(
      'Take the lock in a statement of its own, at READ COMMITTED, so that the read that follows it has a newer snapshot.',
    ),
  ]
}

function fixesByName(anomaly: Anomaly, history: History): Fix[] {
  const { name, read, write, hit } = anomaly
  if (name === 'deadlock') return deadlockFixes(anomaly)
  if (name === 'unhandled serialization failure') {
    return [
      way(
        'Run the whole transaction again after 40001, from its BEGIN.',
        'await hf.transaction(async (tx) => { … }) // retries 40001 and 40P01',
      ),
      way('Take a lock before the first read, so that there is nothing to refuse.'),
    ]
  }
  if (name === 'unhandled duplicate') return duplicateFixes(hit)
  if (name === 'unhandled error') {
    return [
      way('Expect the error and try again from the start, or take a lock before the first read.'),
    ]
  }
  if (name === 'lost after crash' || name === 'lost answer') return crashFixes(name)
  if (read === undefined) return []
  if (name === 'read skew') {
    return [
      way(
        `Read both in one statement, or give the reading transaction of ${read.who} one snapshot.`,
        'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
      ),
    ]
  }
  if (name === 'double claim') return claimFixes(read, write)
  const ownRow = write?.statement.verb === 'UPDATE' && tableOf(write) === tableOf(read)
  if (name === 'lost update' || (name === 'stale check' && ownRow)) {
    return updateFixes(anomaly, read, write)
  }
  return checkFixes(anomaly, history, read)
}

function claimFixes(read: Moment, write: Moment | undefined): Fix[] {
  const table = tableOf(read)
  const [state] = read.statement.where
  const where = state === undefined ? '…' : `${state.column} = ${state.value}`
  const key = write === undefined ? undefined : keyOf(write)
  return [
    way(
      'Claim with a locking read that passes over what others hold, in one transaction with the UPDATE.',
      `SELECT … FROM ${table} WHERE ${where} ORDER BY … LIMIT 1 FOR UPDATE SKIP LOCKED`,
    ),
    ...(state === undefined
      ? []
      : [
          way(
            'Let the UPDATE itself check, and look at how many rows it changed: 0 means that somebody was faster.',
            `UPDATE ${table} SET … WHERE ${key?.column ?? 'id'} = ${key?.value ?? '…'} AND ${where}`,
          ),
        ]),
  ]
}

function updateFixes({ lockFault }: Anomaly, read: Moment, write: Moment | undefined): Fix[] {
  const key = keyOf(write ?? read) ?? keyOf(read)
  const table = tableOf(write ?? read)
  const assigned = write?.statement.assigned ?? []
  const computed = assigned.find(({ fromItself }) => fromItself)
  const column = (computed ?? assigned[0])?.column ?? 'n'
  const where = key === undefined ? '…' : `${key.column} = ${key.value}`
  const atomic =
    computed === undefined
      ? way(
          'Compute and check in the UPDATE itself, and look at how many rows it changed.',
          `UPDATE ${table} SET ${column} = ${column} - $1 WHERE ${where} AND ${column} >= $1`,
        )
      : way(
          'The UPDATE computes for itself; let it check for itself too, and look at how many rows it changed.',
          `UPDATE ${table} SET ${column} = … WHERE ${where} AND ${column} < $1`,
        )
  if (lockFault !== undefined) return [atomic]
  return [
    atomic,
    way(
      `Lock the row when reading it (${read.number}), in the same transaction as the write.`,
      `SELECT … FROM ${table} WHERE ${where} FOR UPDATE`,
    ),
    guardFix(key, table),
  ]
}

function checkFixes(anomaly: Anomaly, history: History, read: Moment): Fix[] {
  const { name, write, otherRead, lockFault } = anomaly
  const key = keyOf(read) ?? (write === undefined ? undefined : insertedKey(write))
  const table = tableOf(read)
  const unique = uniqueColumns(read, write).join(', ')
  const both = otherRead === undefined ? read.who : list([read.who, otherRead.who])
  return [
    ...(unique === ''
      ? []
      : [
          way(
            'Let a constraint say it, and insert without looking first.',
            `CREATE UNIQUE INDEX ON ${table} (${unique}) -- then INSERT … ON CONFLICT (${unique}) DO NOTHING`,
          ),
        ]),
    ...(lockFault === undefined
      ? [guardFix(key, table), ...rowLockFix(history, read, key, name === 'write skew')]
      : []),
    way(`Run ${both} at SERIALIZABLE, and run again what fails with 40001.`),
  ]
}

function guardFix(key: Equality | undefined, table: string): Fix {
  const [name, part] =
    key === undefined ? [table, `'all'`] : [subjectName(key.column, table), variable(key.column)]
  const which = key === undefined ? '' : `, here the one for ${key.column} = ${key.value}`
  return way(
    `Lock a name before the read, and hold it to the commit${which}.`,
    `await hf.guard(lockKey('${name}', ${part}), async (tx) => { … })`,
  )
}

/** Rows that are there can be locked; for those that are not, a row that all such checks share. */
function rowLockFix(
  history: History,
  read: Moment,
  key: Equality | undefined,
  locksRows: boolean,
): Fix[] {
  const table = tableOf(read)
  if (locksRows && read.statement.aggregate === undefined) {
    const [first] = read.statement.where
    const where = first === undefined ? '…' : `${first.column} = ${first.value}`
    return [
      way(
        `Lock every row that the decision rests on when reading it (${read.number}).`,
        `SELECT … FROM ${table} WHERE ${where} FOR UPDATE`,
      ),
    ]
  }
  if (key === undefined || !/[^_]_?id$/i.test(key.column)) return []
  const parent = parentOf(history, key)
  return [
    parent === undefined
      ? way(
          `Lock the row that ${key.column} refers to before (${read.number}), with SELECT … FOR UPDATE. Locking rows of ${table} does not help: the one in question is not there yet.`,
        )
      : way(
          `Lock the parent row before (${read.number}).`,
          `SELECT 1 FROM ${parent} WHERE id = ${key.value} FOR UPDATE`,
        ),
  ]
}

/** `event_id` → `events`, if there is such a table. */
function parentOf({ run, moments, schema }: History, { column }: Equality): string | undefined {
  const [, stem] = /^(\w+?)_?id$/i.exec(column) ?? []
  if (stem === undefined) return undefined
  const forms = [stem, `${stem}s`, `${stem}es`, stem.replace(/y$/i, 'ies')]
  const wanted = new Set(forms.map((form) => form.toLowerCase()))
  const known = [
    ...run.tables.map(({ name }) => nameOf(name, { schema })),
    ...moments.flatMap(({ statement }) => statement.tables),
  ]
  return known.find((name) => wanted.has(name.toLowerCase()))
}

/**
 * Columns that the check compares and the INSERT fills with the same values: then the rule is that
 * there is only one, and a constraint can say so. Counting up to a limit is another rule.
 */
function uniqueColumns(read: Moment, write: Moment | undefined): string[] {
  const { aggregate, where } = read.statement
  if (write?.statement.verb !== 'INSERT') return []
  if (write === read) return where.map(({ column }) => column)
  if (aggregate !== undefined && aggregate !== 'exists') return []
  if (read.step.answer.rowCount > 0 && aggregate === undefined) return []
  const inserted = write.statement.sets
  return where
    .filter(({ column, value }) =>
      inserted.some((one) => one.column === column && one.value === value),
    )
    .map(({ column }) => column)
}

function insertedKey({ statement }: Moment): Equality | undefined {
  return statement.sets.find(({ column }) => /_id$|Id$/.test(column))
}

function deadlockFixes({ circle = [] }: Anomaly): Fix[] {
  const [first] = circle
  const table = first === undefined ? '…' : tableOf(first)
  return [
    way(
      'Take the locks in one order everywhere: all at once, sorted, before the first write.',
      `SELECT … FROM ${table} WHERE id = ANY($1) ORDER BY id FOR UPDATE`,
    ),
    way(
      'Lock names; Holdfast sorts them.',
      `await hf.guard([lockKey('${table}', a), lockKey('${table}', b)], async (tx) => { … })`,
    ),
    way('Run the whole transaction again after 40P01; hf.transaction does.', undefined, 'and'),
  ]
}

function duplicateFixes(hit: Moment | undefined): Fix[] {
  const table = hit === undefined ? '…' : tableOf(hit)
  if (hit?.step.answer.error?.sqlstate.startsWith('42') === true) {
    return [
      way(
        'Let only one do it at a time: a lock before the look, held to the commit. IF NOT EXISTS looks first, too.',
        `await hf.guard(lockKey('schema', 'migrate'), async (tx) => { … })`,
      ),
    ]
  }
  return [
    way(
      'Insert without looking first, and read the row that is there if nothing was inserted.',
      `INSERT INTO ${table} … ON CONFLICT DO NOTHING RETURNING *`,
    ),
    way('Catch 23505 and read again, outside the transaction that failed.'),
  ]
}

function crashFixes(name: 'lost after crash' | 'lost answer'): Fix[] {
  if (name === 'lost answer') {
    return [
      way(
        'Give the operation an id, and let the database remember it in the same transaction: a second try then finds the first.',
        'INSERT INTO operations (id) VALUES ($1) ON CONFLICT (id) DO NOTHING -- 0 rows: done already',
      ),
      way('Use the Holdfast ledger, where the same operationId is applied once.'),
    ]
  }
  return [
    way(
      'Do what belongs together in one transaction. Where something outside the database is part of it, put the amount aside in a way that ends by itself.',
      `await book.withHold(key, { estimate, ttl: '2 min', operationId }, async (hold) => { … })`,
    ),
  ]
}

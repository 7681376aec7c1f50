/** Ways out where a row was written on the strength of an old look at it. */
import type { Failure } from '../core/model.ts'
import type { Anomaly } from './anomaly.ts'
import { type Fix, hasColumn, hasHoldfast, seenValue, way } from './fix.ts'
import { guardFix } from './fixes-of-sets.ts'
import { changedNothing, type History, type Moment, readHistory } from './history.ts'
import { clauseText } from './shorten.ts'
import { keyOf, ref, sqlName, sqlTable, tableOf } from './words.ts'

const faster = '0 means that somebody was faster'

export function claimFixes(history: History, read: Moment, write: Moment | undefined): Fix[] {
  const table = sqlTable(read)
  const where = clauseText(read.statement, 'WHERE') ?? '…'
  if (read === write) {
    return [
      way(
        'Lock the row where it is chosen, and pass over what others hold.',
        hasColumn(history, tableOf(read), 'id')
          ? `UPDATE ${table} SET … WHERE id = (SELECT id FROM ${table} WHERE … LIMIT 1 FOR UPDATE SKIP LOCKED)`
          : undefined,
      ),
    ]
  }
  const key = write && keyOf(write)
  const checked = way(
    `Let the UPDATE itself check, and look at how many rows it changed: ${faster}.`,
    `UPDATE ${table} SET … WHERE ${key === undefined ? '…' : `${sqlName(key.column)} = ${key.value}`} AND ${where}`,
  )
  if (read.statement.skipsLocked) {
    const until = write === undefined ? '' : ` to ${ref(write)}`
    return [
      way(
        `The lock of ${ref(read)} is gone when it has answered: put BEGIN before it and COMMIT after the UPDATE, one transaction from ${ref(read)}${until}.`,
      ),
      checked,
    ]
  }
  return [
    way(
      'Claim with a locking read that passes over what others hold, in one transaction with the UPDATE.',
      `SELECT … FROM ${table} WHERE ${where} ORDER BY … LIMIT 1 FOR UPDATE SKIP LOCKED`,
    ),
    checked,
  ]
}

export function updateFixes(
  { lockFault }: Anomaly,
  history: History,
  read: Moment,
  write: Moment | undefined,
  serial: Failure['serial'],
): Fix[] {
  const others = serial.map(({ run }) => readHistory(run, history.flows))
  const atomic = write === undefined ? [] : [atomicFix(read, write, [history, ...others])]
  if (lockFault !== undefined) return atomic
  const table = tableOf(read)
  const where = clauseText(read.statement, 'WHERE') ?? '…'
  // A row that is not there cannot be locked, nor one of a view that adds up.
  const isTable = history.run.tables.some(
    ({ name }) => name.split('.').at(-1) === table.split('.').at(-1),
  )
  const isThere = read.step.answer.rowCount > 0 && (isTable || history.run.tables.length === 0)
  return [
    ...atomic,
    ...(isThere
      ? [
          way(
            `Lock the row when reading it (${read.number}), in the same transaction as the write.`,
            `SELECT … FROM ${sqlTable(read)} WHERE ${where} FOR UPDATE`,
          ),
        ]
      : []),
    ...(hasHoldfast(history) ? [guardFix(keyOf(write ?? read) ?? keyOf(read), table)] : []),
  ]
}

/** Check and write in one statement. */
function atomicFix(read: Moment, write: Moment, runs: readonly History[]): Fix {
  const { statement } = write
  const table = sqlTable(write)
  const where = clauseText(statement, 'WHERE') ?? '…'
  const upsert = clauseText(statement, 'ON')
  if (upsert !== undefined) {
    const column = /DO UPDATE SET (\w+)/i.exec(upsert)?.[1] ?? '…'
    return way(
      'Let ON CONFLICT compute from the row that is there, and not from what was read.',
      `INSERT INTO ${table} … ON CONFLICT … DO UPDATE SET ${column} = ${table.split('.').at(-1)}.${column} + …`,
    )
  }
  if (statement.verb === 'DELETE') {
    return way(
      `Let the DELETE decide: look at how many rows it removed; ${faster}.`,
      `DELETE FROM ${table} WHERE ${where} RETURNING *`,
    )
  }
  if (changedNothing(write)) {
    return way(
      `Look at how many rows ${ref(write)} changed: 0 means that what was read is no longer so. Read again and try again, or refuse.`,
    )
  }
  const update = (set: string, condition: string): string =>
    `UPDATE ${table} SET ${set} WHERE ${condition}`
  const set = clauseText(statement, 'SET') ?? '…'
  const looked = lookedFor(read, write)
  const check = `Let the UPDATE itself check, and look at how many rows it changed: ${faster}.`
  if (looked !== undefined) return way(check, update(set, looked))
  const computed = statement.assigned.find(({ fromItself }) => fromItself)
  if (computed !== undefined) {
    return way(
      'The UPDATE computes for itself; let it check for itself too, and look at how many rows it changed.',
      update(set, `${where} AND ${boundOf(computed.column, set)}`),
    )
  }
  const changed = statement.sets.find(({ column }) => seenValue(read, column) !== undefined)
  if (changed === undefined) return way(check, update(set, `${where} AND …`))
  const { column } = changed
  const seen = seenValue(read, column) ?? null
  const own = ownChange(column, seen, changed.value)
  if (own !== undefined && (!own.byNumber || isAdded(write, column, runs))) {
    const condition = own.condition === undefined ? where : `${where} AND ${own.condition}`
    return way(
      'Let the UPDATE compute from the row as it is, with nothing but what changes.',
      update(own.set, condition),
    )
  }
  return way(
    `Write only if it is still what was read, and look at how many rows it changed: ${faster}.`,
    update(
      set,
      `${where} AND ${sqlName(column)} ${seen === null ? 'IS NULL' : `= ${literal(seen)}`}`,
    ),
  )
}

/**
 * Whether a number is changed by as much as it differs here, and not set to what it is: then the same was added to two
 * different numbers, and never anything else.
 */
function isAdded(write: Moment, column: string, runs: readonly History[]): boolean {
  const flows = new Set(runs.flatMap(({ run }) => run.steps.map(({ flow }) => flow)))
  const changes = [...flows].map((flow) => {
    const seen = new Map<number, Set<number>>()
    for (const { moments } of runs) {
      const own = moments.filter((one) => one.step.flow === flow && tableOf(one) === tableOf(write))
      const from = own
        .map((one) => seenValue(one, column))
        .find((value) => typeof value === 'string')
      const to = own
        .find(({ statement }) => statement.verb === 'UPDATE')
        ?.statement.sets.find((one) => one.column === column)?.value
      const by = Number(to?.replace(/^'(.*)'$/s, '$1')) - Number(from)
      if (!Number.isNaN(by)) seen.set(by, (seen.get(by) ?? new Set()).add(Number(from)))
    }
    return seen
  })
  return (
    changes.every((seen) => seen.size <= 1) &&
    changes.some((seen) => [...seen.values()].some((from) => from.size > 1))
  )
}

/** What the read asked for beyond the rows that are written: the UPDATE can ask for it as well. */
function lookedFor(read: Moment, write: Moment): string | undefined {
  const asked = clauseText(read.statement, 'WHERE')
  const written = clauseText(write.statement, 'WHERE')
  if (tableOf(read) !== tableOf(write) || read.statement.limited) return undefined
  return asked !== undefined && written !== undefined && asked.startsWith(`${written} AND `)
    ? asked
    : undefined
}

/** `n = n - 80` must not go below nothing; what grows has a limit that only its owner knows. */
function boundOf(name: string, set: string): string {
  const column = sqlName(name)
  const taken = new RegExp(String.raw`\b${name}"?\s*-\s*(\$?[\w.']+)`).exec(set)?.[1]
  return taken === undefined ? `${column} < … -- its limit` : `${column} >= ${taken}`
}

interface Change {
  readonly set: string
  /** A number that nobody sent: the difference of two. */
  readonly byNumber: boolean
  readonly condition?: string
}

/** A new value as a change of the old one: a difference, or something appended. */
function ownChange(name: string, seen: string | null, shown: string): Change | undefined {
  if (seen === null) return undefined
  const column = sqlName(name)
  const written = shown.replace(/^'(.*)'$/s, '$1').replaceAll("''", "'")
  const number = /^-?\d+(?:\.\d+)?$/
  if (number.test(seen) && number.test(written)) {
    const by = Number(written) - Number(seen)
    if (!Number.isSafeInteger(by)) return undefined
    return by < 0
      ? { set: `${column} = ${column} - ${-by}`, condition: `${column} >= ${-by}`, byNumber: true }
      : { set: `${column} = ${column} + ${by}`, byNumber: true }
  }
  if (/^\{.*\}$/s.test(seen) && written.startsWith('{')) {
    // What is deeper than the first level would be replaced as a whole.
    return /[{[]/.test(`${seen}${written}`.replaceAll(/^\{|(?<=\})\{/g, ''))
      ? undefined
      : { set: `${column} = ${column} || $1`, byNumber: false }
  }
  const added = written.startsWith(seen) && !/^(?:t|f|true|false)$/.test(seen)
  return added
    ? { set: `${column} = ${column} || ${literal(written.slice(seen.length))}`, byNumber: false }
    : undefined
}

function literal(text: string): string {
  if (text === 't' || text === 'f') return String(text === 't')
  return /^-?\d+(?:\.\d+)?$/.test(text) ? text : `'${text.replaceAll("'", "''")}'`
}

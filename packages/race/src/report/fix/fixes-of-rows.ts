/** Ways out where a row was written on the strength of an old look at it. */
import type { Failure } from '../../core/model.ts'
import type { Anomaly } from '../anomaly/anomaly.ts'
import { assignedBy, changeOf, sentValue } from './assignments.ts'
import { type Bound, boundOf } from './bounds.ts'
import { type Case, changed, faster, whereOf } from './case.ts'
import { type Fix, hasColumn, hasHoldfast, seenValue, way, withEdit } from './fix.ts'
import { guardFix } from './guard-fix.ts'
import { changedNothing, type History, type Moment, readHistory } from '../anomaly/history.ts'
import { isNumber, knownColumn, knownTable, sameValue } from './known.ts'
import { isOneTransaction, nameLockFix, rowLockFix } from './lock-fixes.ts'
import { conditionEdit, lockingEdit } from './statement-edit.ts'
import { clauseText } from '../sql/shorten.ts'
import { addedNumber, appendedPart, turnsOf } from './turns.ts'
import { unchangedFix } from './unchanged-fix.ts'
import { sqlName } from '../sql/sql-name.ts'
import { keyOf, ref, sqlTable, tableOf } from '../words.ts'

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
  const claim = way(
    'Claim with a locking read that passes over what others hold, in one transaction with the UPDATE.',
    `SELECT … FROM ${table} WHERE ${where} ORDER BY … LIMIT 1 FOR UPDATE SKIP LOCKED`,
  )
  return [
    isOneTransaction(read, write)
      ? withEdit(claim, lockingEdit(read, 'FOR UPDATE SKIP LOCKED'))
      : claim,
    checked,
  ]
}

/** A statement that decides for itself, where that is shown to help; the lock of the row; a lock by name. */
export function updateFixes(
  anomaly: Anomaly,
  history: History,
  read: Moment,
  write: Moment | undefined,
  serial: Failure['serial'],
): Fix[] {
  const runs = [history, ...serial.map(({ run }) => readHistory(run, history.flows))]
  const found = write && { anomaly, history, read, write, turns: turnsOf(runs, write) }
  const atomic = found === undefined ? undefined : atomicFix(found)
  const first = atomic === undefined ? [] : [atomic]
  if (anomaly.lockFault !== undefined) return first
  const locked = rowLockFix(history, read, write)
  const others = found === undefined || atomic !== undefined ? [] : otherFixes(found)
  const guard = guardFix(keyOf(write ?? read) ?? keyOf(read), tableOf(read), history, [read, write])
  const named = first.length + locked.length === 0 ? [nameLockFix(read)] : []
  return [...first, ...locked, ...others, ...named, ...(hasHoldfast(history) ? [guard] : [])]
}

/** Check and write in one statement; undefined where nothing shows that it would be enough, and do no harm. */
function atomicFix(found: Case): Fix | undefined {
  const { anomaly, write } = found
  const { statement } = write
  if (statement.verb === 'DELETE' && anomaly.otherWrite?.statement.verb === 'DELETE') {
    return way(
      `Let the DELETE decide: look at how many rows it removed; ${faster}.`,
      `DELETE FROM ${sqlTable(write)} WHERE ${whereOf(write)} RETURNING *`,
    )
  }
  if (changedNothing(write)) {
    return way(
      `Look at how many rows ${ref(write)} changed: 0 means that what was read is no longer so. Read again and try again, or refuse.`,
    )
  }
  if (clauseText(statement, 'ON') !== undefined) return upsertFix(found)
  if (statement.verb !== 'UPDATE' && statement.verb !== 'DELETE') return undefined
  return lookedForFix(found) ?? computedFix(found) ?? ownChangeFix(found) ?? unchangedFix(found)
}

/** ON CONFLICT adds to the row that is there. What becomes of a text or a document it cannot say. */
function upsertFix({ history, write, turns }: Case): Fix | undefined {
  const table = tableOf(write)
  const columns = knownTable(history, table)?.columns.map(({ name }) => name) ?? []
  const own = assignedBy(write).find(({ column }) => {
    return (
      isNumber(knownColumn(history, table, column)) &&
      sentValue(write, column, columns) !== undefined
    )
  })
  if (own === undefined) return undefined
  const by = addedNumber(turns, own.column, write.step.flow)
  const bound =
    by === undefined
      ? undefined
      : boundOf(turns, write.step.flow, own.column, by, knownTable(history, table))
  if (by === undefined || bound?.kind !== 'none') return undefined
  const column = sqlName(own.column)
  return way(
    'Let ON CONFLICT compute from the row that is there, and not from what was read.',
    `INSERT INTO ${sqlTable(write)} … ON CONFLICT … DO UPDATE SET ${column} = ${sqlName(table.split('.').at(-1) ?? table)}.${column} + ${by}`,
  )
}

/** What the read asked for beyond the rows that are written, if the other one made that untrue. */
function lookedForFix({
  anomaly: { otherWrite },
  history,
  read,
  write,
  turns,
}: Case): Fix | undefined {
  const asked = clauseText(read.statement, 'WHERE')
  const written = clauseText(write.statement, 'WHERE')
  if (tableOf(read) !== tableOf(write) || read.statement.limited) return undefined
  if (asked === undefined || written === undefined || !asked.startsWith(`${written} AND `)) {
    return undefined
  }
  const madeUntrue = read.statement.where.some(({ column, value }) => {
    const sent = otherWrite && sentValue(otherWrite, column)
    const known = knownColumn(history, tableOf(write), column)
    return (
      typeof sent === 'string' && sameValue(known, sent, value.replace(/^'(.*)'$/s, '$1')) === false
    )
  })
  const refused = turns.some(({ flow, absent, write: done }) => {
    return flow === write.step.flow && absent && done === undefined
  })
  if (!madeUntrue && !refused) return undefined
  return way(
    `Let the ${write.statement.verb} itself check, and look at how many rows it changed: ${faster}.`,
    changed(write, asked),
  )
}

/** `balance = balance - 30` may need a check; `used = used + 1` a limit. */
function computedOf({
  history,
  read,
  write,
  turns,
}: Case): { readonly column: string; readonly by: number; readonly bound: Bound } | undefined {
  const table = tableOf(write)
  for (const { column } of assignedBy(write)) {
    const by = changeOf(write, column)
    if (by === undefined || seenValue(read, column) === undefined) continue
    if (!isNumber(knownColumn(history, table, column))) continue
    // It has a condition already, so that is not what is missing.
    if (write.statement.whereTokens.some(({ text }) => text === column)) continue
    return {
      column,
      by,
      bound: boundOf(turns, write.step.flow, column, by, knownTable(history, table)),
    }
  }
  return undefined
}

/** Without a refusal in any order, the check is not what went wrong: the value went elsewhere. */
function computedFix(found: Case): Fix | undefined {
  const { write, turns } = found
  const { bound } = computedOf(found) ?? {}
  const refused = turns.some((turn) => {
    return turn.flow === write.step.flow && turn.seen !== undefined && turn.write === undefined
  })
  if (bound?.kind !== 'condition' || !refused) return undefined
  const fix = way(
    'The UPDATE computes for itself; let it check for itself too, and look at how many rows it changed.',
    changed(write, `${whereOf(write)} AND ${bound.sql}`),
  )
  return withEdit(fix, conditionEdit(write, bound.sql))
}

/** A new value as a change of the old one: a difference, or something appended. */
function ownChangeFix({ history, read, write, turns }: Case): Fix | undefined {
  if (write.statement.verb !== 'UPDATE') return undefined
  const [table, flow] = [tableOf(write), write.step.flow]
  const assigned = assignedBy(write)
  const text = 'Let the UPDATE compute from the row as it is, with nothing but what changes.'
  for (const { column } of assigned) {
    const known = knownColumn(history, table, column)
    if (known === undefined || seenValue(read, column) === undefined) continue
    // What else is set from what was read would stay as stale as it was.
    if (
      assigned.some((one) => one.column !== column && seenValue(read, one.column) !== undefined)
    ) {
      continue
    }
    const name = sqlName(column)
    const rest = assigned.length > 1 ? ', …' : ''
    const part = appendedPart(turns, column, flow, known.type)
    if (part !== undefined) {
      const cast = known.type === 'jsonb' ? '' : `::${known.type.slice(1)}[]`
      const literal = `'${part.replaceAll("'", "''")}'${cast}`
      return way(text, changed(write, whereOf(write), `${name} = ${name} || ${literal}${rest}`))
    }
    const by = isNumber(known) ? addedNumber(turns, column, flow) : undefined
    if (by === undefined) continue
    const bound = boundOf(turns, flow, column, by, knownTable(history, table))
    if (bound.kind === 'unknown') continue
    const condition = bound.kind === 'none' ? '' : ` AND ${bound.sql}`
    const sum = by < 0 ? `- ${-by}` : `+ ${by}`
    return way(
      text,
      changed(write, `${whereOf(write)}${condition}`, `${name} = ${name} ${sum}${rest}`),
    )
  }
  return undefined
}

/** Beside the lock: what is right in general, and cannot be written down without knowing more. */
function otherFixes(found: Case): Fix[] {
  const { read, write } = found
  if (write.statement.verb === 'INSERT') return []
  const computed = computedOf(found)
  if (computed?.bound.kind === 'unknown') {
    const column = sqlName(computed.column)
    const limit =
      computed.by > 0
        ? `${column} + ${computed.by} <= … -- its limit`
        : `${column} >= … -- what the code asks for`
    return [
      way(
        'Let the UPDATE check what the code checks, and look at how many rows it changed.',
        changed(write, `${whereOf(write)} AND ${limit}`),
      ),
    ]
  }
  const own = assignedBy(write).find(({ column }) => {
    return changeOf(write, column) !== undefined && seenValue(read, column) !== undefined
  })
  if (own === undefined || write.statement.verb !== 'UPDATE') return []
  return [
    way(
      `Go on with what the UPDATE (${write.number}) left, and not with what was read before it (${read.number}).`,
      `${changed(write, whereOf(write))} RETURNING ${sqlName(own.column)}`,
    ),
  ]
}

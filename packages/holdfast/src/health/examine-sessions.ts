import type { Executor } from '../core/driver.ts'
import { moveOfSlot } from '../engines/postgres/shards/moves.ts'
import {
  dropSlot,
  endPrepared,
  endSession,
  oldTransactions,
  preparedTransactions,
  unusedSlots,
} from '../engines/postgres/health/server.ts'
import { finding, type HealthFinding, notChecked } from './finding.ts'
import { lengthOf } from './setting-value.ts'

/** So many are told of one by one. */
const listedMost = 5

interface OldTransaction {
  readonly pid: number
  readonly began: string
  readonly application_name: string
  readonly usename: string
  readonly idle: boolean
  readonly openMs: number
  readonly stateMs: number
}

/** Transactions that others have left open in this database: they keep locks, and vacuum from its work. */
export async function examineTransactions(
  executor: Executor,
  { openMs, idleMs }: { readonly openMs: number; readonly idleMs: number },
): Promise<HealthFinding[]> {
  const [row] = await executor.query(oldTransactions(openMs, idleMs, listedMost))
  const listed = JSON.parse(String(row?.['listed'])) as OldTransaction[]
  const more = Number(row?.['found'] ?? 0) - listed.length
  const hidden = Number(row?.['hidden'] ?? 0)
  return [
    ...listed.map((session, at) =>
      openTransaction(session, idleMs, at === listed.length - 1 ? more : 0),
    ),
    ...(hidden === 0
      ? []
      : [
          notChecked(
            'sessions',
            'sessions',
            `of other roles (${hidden} in this database) are not shown to this one.`,
            'Connect as a member of pg_read_all_stats.',
          ),
        ]),
  ]
}

function openTransaction(session: OldTransaction, idleMs: number, more: number): HealthFinding {
  const { pid, began, application_name, usename, idle, openMs, stateMs } = session
  const who = `of ${[usename, application_name].filter((name) => name !== '').join(', ')}`
  const others = more === 0 ? '' : ` ${more} more are not listed.`
  return idle && stateMs > idleMs
    ? finding(
        'idle-in-transaction',
        `session ${pid}`,
        `${who} has done nothing for ${lengthOf(stateMs)} inside an open transaction, and keeps its locks.${others}`,
        endSession(pid, began),
      )
    : finding(
        'long-transaction',
        `session ${pid}`,
        `${who} has had a transaction open for ${lengthOf(openMs)}; vacuum removes nothing that it may see.${others}`,
        endSession(pid, began),
      )
}

/** Prepared transactions: only who knows their name can end them. */
export async function examinePrepared(executor: Executor, ms: number): Promise<HealthFinding[]> {
  const rows = await executor.query(preparedTransactions(ms))
  return rows.map((row) =>
    finding(
      'prepared-transaction',
      `prepared transaction ${String(row['gid'])}`,
      `of ${String(row['owner'])} has waited for ${lengthOf(Number(row['ms']))} to be ended, and keeps its locks. Unless whoever coordinates it still knows it:`,
      endPrepared(String(row['gid'])),
    ),
  )
}

/** Replication slots that nobody reads. */
export async function examineSlots(executor: Executor): Promise<HealthFinding[]> {
  const rows = await executor.query(unusedSlots)
  return rows.map((row) => {
    const name = String(row['name'])
    const kept = `keeps ${String(row['kept'])} of WAL, and rows as old as ${String(row['age'])} transactions.`
    const move = moveOfSlot(name)
    return move === undefined
      ? finding(
          'slot-unused',
          `replication slot ${name}`,
          `is not in use and ${kept} If nobody will come back for it:`,
          dropSlot(name),
        )
      : finding(
          'slot-unused',
          `replication slot ${name}`,
          `belongs to a move of buckets that has stopped, and ${kept} Without it the move cannot go on.`,
          `Bring the move to its end with \`holdfast shards move --resume ${move} --yes\`, or put everything back with \`--undo ${move}\`.`,
        )
  })
}

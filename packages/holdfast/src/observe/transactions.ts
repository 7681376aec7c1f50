import { sessionAdvice } from '../blocking/advice.ts'
import { adviceWords } from '../engines/postgres/observe/advice-words.ts'
import { splitApplication } from '../engines/postgres/tx/activity.ts'
import { readTransactions } from '../engines/postgres/observe/transactions.ts'
import { lengthText, limitOf, type Looking, read, withoutNulls } from './answer.ts'
import { look } from './look.ts'
import type { Advice, ObservedSession, TransactionReport } from './model.ts'

interface StoredSession {
  readonly pid: number
  readonly application: string
  readonly user: string
  readonly client: string | null
  readonly startedAt: string
  readonly state: string | null
  readonly stateMs: number | null
  readonly transactionStartedAt: string
  readonly transactionMs: number
  readonly queryMs: number | null
  readonly query: string
  readonly blockedBy: readonly number[]
}

interface StoredReport {
  readonly at: string
  readonly longest: readonly StoredSession[]
  readonly oldest: NonNullable<TransactionReport['oldestXmin']> | null
  readonly prepared: readonly { readonly gid: string; readonly ms: number }[]
}

/** From when on a prepared transaction is forgotten, and an old snapshot a nuisance. */
const tooLong = { preparedMs: 60_000, xminAge: 1_000_000 }

export async function observeTransactions<Tx>(
  { driver, statementTimeoutMs }: Looking<Tx>,
  { limit = 20 }: { readonly limit?: number } = {},
): Promise<TransactionReport> {
  const statement = readTransactions(limitOf(limit, 'limit'))
  const stored = await look(driver, statementTimeoutMs, (executor) =>
    read<StoredReport>(executor, statement),
  )
  const oldestXmin = stored.oldest === null ? undefined : withoutNulls(stored.oldest)
  return {
    at: stored.at,
    longest: stored.longest.map(sessionOf),
    ...(oldestXmin === undefined ? {} : { oldestXmin }),
    advice: [...adviceOnPrepared(stored.prepared), ...adviceOnXmin(oldestXmin)],
  }
}

function sessionOf(stored: StoredSession): ObservedSession {
  const { client, state, stateMs, queryMs, blockedBy, ...rest } = stored
  const { application, label } = splitApplication(stored.application)
  const blocks = [...new Set(blockedBy)].map((pid) => ({ pid, kind: 'hard' as const }))
  return {
    ...rest,
    application,
    ...(label === undefined ? {} : { label }),
    ...(client === null ? {} : { client }),
    state: state ?? 'unknown',
    stateMs: stateMs ?? 0,
    ...(queryMs === null ? {} : { queryMs }),
    holds: [],
    blockedBy: blocks,
    waiters: 0,
    hidden: false,
    advice: sessionAdvice(
      {
        pid: stored.pid,
        state: state ?? 'unknown',
        stateMs: stateMs ?? 0,
        transactionMs: stored.transactionMs,
        holds: [],
        waitsFor: undefined,
        blockedBy: blocks,
        waiters: 0,
        inCircle: false,
      },
      adviceWords,
    ),
  }
}

function adviceOnPrepared(prepared: StoredReport['prepared']): Advice[] {
  return prepared
    .filter(({ ms }) => ms >= tooLong.preparedMs)
    .map(({ gid, ms }) => ({
      code: 'prepared-transaction',
      what: `The prepared transaction ${JSON.stringify(gid)} has kept its locks for ${lengthText(ms)}, and nobody's end releases them.`,
      fix: 'End it by COMMIT PREPARED or ROLLBACK PREPARED, as its transaction manager decided.',
    }))
}

const whose = {
  session: (who: string) => `a session${who === '' ? '' : ` of ${JSON.stringify(who)}`}`,
  prepared: (who: string) => `the prepared transaction ${JSON.stringify(who)}`,
  slot: (who: string) => `the replication slot ${JSON.stringify(who)}`,
  standby: (who: string) => `the standby ${JSON.stringify(who)}`,
} as const

const remedies = {
  session: 'End its transaction; if it only reads, read in smaller pieces.',
  prepared: 'End it by COMMIT PREPARED or ROLLBACK PREPARED.',
  slot: 'Let its consumer catch up, or drop the slot by pg_drop_replication_slot if nobody uses it.',
  standby: 'Look for a long query on the standby; hot_standby_feedback keeps its rows alive here.',
} as const

/** About the oldest snapshot, if it is old enough to matter. */
export function adviceOnXmin(oldest: TransactionReport['oldestXmin']): Advice[] {
  if (oldest === undefined || oldest.age < tooLong.xminAge) return []
  return [
    {
      code: 'xmin-held-back',
      what: `Vacuum cannot remove rows that died in the last ${oldest.age} transactions, because of ${whose[oldest.by](oldest.who)}.`,
      fix: remedies[oldest.by],
    },
  ]
}

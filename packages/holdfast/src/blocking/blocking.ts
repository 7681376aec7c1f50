import { assertDriver } from '../core/client-kind.ts'
import type { Driver } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { keyQueuesOf, type QueuedKey } from '../core/locks/key-queues.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertNotNested } from '../core/open-transactions.ts'
import { isStorable } from '../core/storable.ts'
import type { BlockingEngine, LookLimits, MeantTransaction } from './engine.ts'
import type { HotKey, LockTree, ObservedSession } from './model.ts'
import { hotKeysIn, longestIn, treeOf } from './tree.ts'

/** Who blocks whom. Changes nothing. */
export interface Blocking {
  /** Who blocks whom, by name. */
  locks(): Promise<LockTree>
  /** One session, whatever it does. */
  session(pid: number): Promise<ObservedSession | undefined>
  /** Keys that most sessions wait for, right now. */
  hotKeys(): Promise<readonly HotKey[]>
  /**
   * Keys that guards of this process wait for in memory, the longest queue first: those of the same driver, since
   * only they share a queue. Asks nobody, so it works without a connection.
   */
  queues(): readonly QueuedKey[]
  /** The longest transactions. */
  transactions(options?: { readonly limit?: number }): Promise<LongestTransactions>
}

/** Transactions that have been open for longest. */
export interface LongestTransactions {
  readonly at: string
  readonly longest: readonly ObservedSession[]
  /** Always empty here. */
  readonly advice: readonly never[]
}

/**
 * Which transaction is meant, as the observer showed it. A process id is used again by another session, and
 * a pooled session by another transaction: neither of them is touched.
 */
export interface SessionSeen {
  /** `startedAt` of the session. */
  readonly startedAt: string
  /** `transactionStartedAt` of the session; `null` if it was in no transaction. */
  readonly transactionStartedAt: string | null
  /** `transactionId` of the session, which MariaDB and MySQL need: they tell moments to the second only. */
  readonly transactionId?: string
}

/** What may be done about a session. */
export interface SessionInterventions {
  /**
   * Cancels the statement that a session is running. False if it runs none.
   *
   * @throws OBSERVE_NO_SUCH_SESSION, OBSERVE_TRANSACTION_OVER, OBSERVE_RIGHT_MISSING, OPTION_INVALID
   */
  cancel(pid: number, seen: SessionSeen): Promise<boolean>
  /**
   * Ends a session; its transaction is rolled back, its locks are free.
   *
   * @throws OBSERVE_NO_SUCH_SESSION, OBSERVE_TRANSACTION_OVER, OBSERVE_RIGHT_MISSING, OPTION_INVALID
   */
  terminate(pid: number, seen: SessionSeen): Promise<boolean>
}

/** Who blocks whom, over a driver of the engine. */
export function blockingOver<Tx>(
  engine: BlockingEngine,
  driver: Driver<Tx>,
  limits: LookLimits,
): Blocking {
  const tree = async (asked: number | undefined): Promise<LockTree> => {
    assertNotNested(driver)
    const began = performance.now()
    const seen = await engine.look(driver, asked, limits)
    return treeOf(seen, { words: engine.adviceWords, asked, tookMs: performance.now() - began })
  }
  return {
    locks: () => tree(undefined),
    async session(pid) {
      if (!isPid(pid) && pid !== 0) return undefined
      const { sessions } = await tree(pid)
      return sessions.find((session) => session.pid === pid)
    },
    hotKeys: async () => hotKeysIn(await tree(undefined)),
    queues: () => keyQueuesOf(driver).report(),
    async transactions(given) {
      const { limit = 20 } = optionsGiven(given, transactionsOptions)
      if (!Number.isSafeInteger(limit) || limit < 1 || limit > 1_000)
        throw invalid('limit', 'limit must be a whole number from 1 to 1000')
      assertNotNested(driver)
      const seen = await engine.look(driver, undefined, limits)
      const longest = longestIn(seen, engine.adviceWords).slice(0, limit)
      return { at: seen.at, longest, advice: [] }
    },
  }
}

const transactionsOptions: KnownOptions<{ readonly limit?: number }> = { limit: 'checked' }

/** Interventions over a driver of the engine. */
export function interventionsOver<Tx>(
  engine: BlockingEngine,
  driver: Driver<Tx>,
  exceptApplication: string | undefined,
): SessionInterventions {
  assertDriver(driver, 'createInterventions', engine.of)
  const end = async (
    what: 'statement' | 'session',
    pid: number,
    seen: SessionSeen,
  ): Promise<boolean> => {
    const meant = { ...checkedSeen(seen), pid, exceptApplication }
    if (!isPid(pid)) {
      throw holdfastError('OBSERVE_NO_SUCH_SESSION', { details: { subject: String(pid), pid } })
    }
    assertNotNested(driver)
    return await engine.end(driver, what, meant)
  }
  return {
    cancel: (pid, seen) => end('statement', pid, seen),
    terminate: (pid, seen) => end('session', pid, seen),
  }
}

function isPid(pid: number): boolean {
  return Number.isSafeInteger(pid) && pid >= 1
}

/** Callers without types may leave it out, and would end whatever runs by then. */
export function checkedSeen(
  seen: Partial<SessionSeen> | undefined,
): Omit<MeantTransaction, 'pid' | 'exceptApplication'> {
  const { startedAt, transactionStartedAt, transactionId } = seen ?? {}
  const named = isStorable(transactionStartedAt) || transactionStartedAt === null
  const numbered = transactionId === undefined || isStorable(transactionId)
  if (isStorable(startedAt) && named && numbered)
    return { startedAt, transactionStartedAt, transactionId }
  throw invalid(
    'seen',
    'seen must hold startedAt and transactionStartedAt, as the session was shown',
  )
}

function invalid(option: string, subject: string): Error {
  return holdfastError('OPTION_INVALID', { details: { option, subject } })
}

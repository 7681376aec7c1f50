import { holdfastError } from '../../../core/errors.ts'
import { sqlStateOf } from '../../../core/sql-state.ts'
import type { OnceEngine, OnceNames, OnceState } from '../../../once/engine.ts'
import { holdersOf, lookAtHolders } from '../locks/look-at-holders.ts'
import { callFunction, callIn, sumOverPrimaries } from '../sql/call-function.ts'
import { beginOnce, forgetOnce, onceLock, storeOnce } from './once.ts'

const lockNotAvailable = '55P03'

/** Each in one call of a function; an advisory lock keeps others out until the transaction ends. */
const keysOn: OnceEngine['keys'] = (driver, schema) => ({
  async begin(transaction, names, wait, whose) {
    const { budgetMs, beside = driver.alone } = transaction
    const began = performance.now()
    const limit = wait.how === 'wait' ? { ...wait, budgetMs } : undefined
    const call = beginOnce(schema, names, limit)
    try {
      return stateOf(
        await (whose === 'ours'
          ? callIn(transaction, call)
          : callFunction(driver, transaction.native, call, 'ONCE_OUTSIDE_TRANSACTION')),
      )
    } catch (error) {
      if (sqlStateOf(error) !== lockNotAvailable) throw error
      const waitedMs = performance.now() - began
      const ended = { ...wait, budgetMs, waitedMs }
      const { blockers, endedBy } = await lookAtHolders(beside, wanted(names), ended)
      throw holdfastError('ONCE_TIMEOUT', {
        cause: error,
        details: endedBy === undefined ? {} : { endedBy },
        blockers,
      })
    }
  },
  async store(transaction, names, json, keepMs) {
    await callIn(transaction, storeOnce(schema, names, json, keepMs))
  },
  forget: (most) => sumOverPrimaries(driver, forgetOnce(schema, most)),
  holders: async (names) => (await holdersOf(driver.alone, wanted(names))) ?? [],
  lock: (names) => ({ kind: 'bigint', id: onceLock(names) }),
})

function wanted(names: OnceNames): Parameters<typeof holdersOf>[1] {
  return [{ key: { lock: { kind: 'bigint', id: onceLock(names) } }, mode: 'exclusive' }]
}

/** As `begin_once` tells it. */
function stateOf(answer: string | null): OnceState {
  if (answer === 'busy' || answer === 'mismatch') return answer
  if (answer === 'done') return { done: undefined }
  return answer?.startsWith('done:') === true ? { done: answer.slice(5) } : 'new'
}

/** PostgreSQL's part of `once`. */
export const postgresOnce: OnceEngine = { of: 'postgres', keys: keysOn }

/** The same API on the ledger. */
import { isHoldfastError, type Refused } from 'holdfast'
import { hf } from './database.ts'
import { think } from './model.ts'
import {
  type Api,
  type CallAnswer,
  type CompletionAnswer,
  estimatedCredits,
  monthlyCalls,
  timeZone,
} from './plan.ts'
import { settings } from './settings.ts'

// #region call
const calls = hf.quota({ name: 'api-calls', limit: monthlyCalls, per: 'month', timeZone })

/** One statement. A request that is sent again gets the answer it got. */
async function useCall(userId: string, requestId: string): Promise<CallAnswer> {
  const verdict = await calls.consume(userId, 1, { operationId: requestId })
  return verdict.ok
    ? { ok: true, left: verdict.available }
    : { ok: false, retryAt: verdict.retryAt }
}
// #endregion

// #region completion
const credits = hf.credits({ name: 'ai-credits' })

/**
 * No lock and no connection is held while the model thinks. The lease keeps the same request from being worked on twice at
 * once; if the process dies, lease and hold end by themselves.
 */
async function complete(
  userId: string,
  requestId: string,
  prompt: string,
): Promise<CompletionAnswer> {
  const name = `completion ${userId} ${requestId}`
  const lease = await hf.leases.tryAcquire(name, { ttl: settings.leaseTtl })
  if (lease === undefined) return { ok: false, why: 'in-progress' }
  const hold = { estimate: estimatedCredits, ttl: settings.holdTtl, operationId: requestId }
  try {
    return await credits.withHold(userId, hold, async ({ signal, settle }) => {
      const answer = await think(prompt, AbortSignal.any([signal, lease.signal]))
      await settle(answer.cost)
      return { ok: true, ...answer }
    })
  } catch (error) {
    if (!isHoldfastError(error, 'LEDGER_HOLD_REFUSED')) throw error
    const { reason } = error.details['verdict'] as Refused<number>
    return { ok: false, why: reason === 'insufficient' ? 'not-enough-credits' : 'already-done' }
  } finally {
    await lease.release()
  }
}
// #endregion

export const ledger: Api = { useCall, complete }

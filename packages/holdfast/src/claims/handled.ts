import { isHoldfastError } from '../core/errors.ts'
import type { ClaimsHandledEvent } from '../core/events/event-map.ts'
import { channels } from '../core/events.ts'
import { traced } from '../core/events/tracing.ts'

/** A claim as far as the end of its handler is concerned. */
interface Handled {
  readonly claim: { readonly attempt: number | undefined }
  readonly abort: AbortController
}

/** Runs a handler below a span of its own, and tells how it ended. */
export async function handled(
  table: string,
  { claim, abort }: Handled,
  work: () => Promise<void>,
): Promise<void> {
  const { attempt } = claim
  const attributes = { 'db.collection.name': table, 'holdfast.attempt': attempt }
  const began = performance.now()
  const tell = (outcome: ClaimsHandledEvent['outcome']): void => {
    const { claimsHandled } = channels
    if (!claimsHandled.hasSubscribers) return
    claimsHandled.publish({ table, outcome, attempt, durationMs: performance.now() - began })
  }
  try {
    await traced('claim', () => ({ target: table, attributes }), work)
  } catch (error) {
    tell(whyEnded(abort, error))
    throw error
  }
  tell('done')
}

/** Why a handler that threw has ended. */
export function whyEnded(abort: AbortController, error: unknown): 'lost' | 'stopped' | 'failed' {
  const reason: unknown = abort.signal.reason
  if (isHoldfastError(reason, 'CLAIM_LOST') || isHoldfastError(error, 'CLAIM_LOST')) return 'lost'
  return isHoldfastError(reason, 'CLAIM_STOPPED') ? 'stopped' : 'failed'
}

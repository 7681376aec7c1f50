import type { Executor } from '../../../core/driver.ts'
import type { ClaimAnswer, TickClaim } from '../../../schedule/engine.ts'
import { clockStepUs, numberIn } from '../sql/clock.ts'
import {
  loseTick,
  momentByHand,
  othersAtWork,
  readSchedule,
  readTick,
  setLastTick,
  takeAgain,
  takenByHand,
  takeTick,
} from './schedule.ts'

/** By the numbers in the column `state`. */
const [running, waiting] = [0, 1]

/**
 * Takes a tick, or says why not, in a transaction that has the right to write: nobody else decides meanwhile. Asked again
 * with the same token, it answers the same.
 */
export async function takeTickIn(transaction: Executor, claim: TickClaim): Promise<ClaimAnswer> {
  const { name, manual, token, retake, most, overlap, run, afterUs } = claim
  const [schedule] = await transaction.query(readSchedule(name))
  if (schedule === undefined) return { kind: 'busy' }
  const now = Number(schedule['nowUs'])
  const atUs = claim.atUs ?? (await byHand(transaction, claim, now))
  const lastUs = Number(schedule['last_tick'])
  if (numberIn(schedule, 'paused_at') !== undefined && !manual) return { kind: 'paused' }
  // What the caller has seen is not here: the file was replaced by an older one.
  if (afterUs !== undefined && afterUs > lastUs) return { kind: 'busy' }
  // Later than the millisecond that the clock is in.
  if (atUs >= now + clockStepUs) return { kind: 'early', inMs: Math.ceil((atUs - now) / 1_000) }

  const key = { name, atUs, manual }
  const claimed = (attempt: number): ClaimAnswer => ({ kind: 'claimed', attempt, atUs, nowUs: now })
  const [tick] = await transaction.query(readTick(key))
  if (tick !== undefined) {
    const [state, attempt] = [Number(tick['state']), Number(tick['attempt'])]
    if (state === running && tick['token'] === token) return claimed(attempt)
    if (state > waiting || Number(tick['lease_until']) > now) return { kind: 'taken' }
    if ((state === running && !retake) || attempt >= most) {
      await transaction.query(loseTick(key))
      return { kind: 'lost' }
    }
  } else if (!manual && atUs <= lastUs) return { kind: 'passed' }

  // A manual tick, one that is owed another attempt, and one that passes over others are not dropped.
  let isSkipped = !run
  if (run && overlap !== 'allow') {
    const [others] = await transaction.query(othersAtWork(name, atUs, now))
    const isDropped = overlap === 'skip' && !manual && tick === undefined
    if (isDropped && Number(others?.['wasAtWork']) === 1) isSkipped = true
    else if (Number(others?.['atWork']) === 1) return { kind: 'busy' }
  }
  const taken = { ...claim, key, now }
  if (tick !== undefined) {
    await transaction.query(takeAgain(taken))
    return isSkipped ? { kind: 'skipped' } : claimed(Number(tick['attempt']) + 1)
  }
  await transaction.query(takeTick(taken, claim.missed, isSkipped))
  if (!manual) await transaction.query(setLastTick(key))
  return isSkipped ? { kind: 'skipped' } : claimed(1)
}

/** Of a tick by hand: the one that this token has already, or a new one now. */
async function byHand(
  transaction: Executor,
  { name, token }: TickClaim,
  now: number,
): Promise<number> {
  const [taken] = await transaction.query(takenByHand(name, token))
  const [last] = await transaction.query(momentByHand(name, now))
  return numberIn(taken, 'tick_at') ?? numberIn(last, 'tick_at') ?? now
}

import type { Executor, Row } from '../../../core/driver.ts'
import type { ClaimAnswer, TickClaim } from '../../../schedule/engine.ts'
import { waitEndedBy } from '../errno.ts'
import {
  lockSchedule,
  lockTick,
  loseTick,
  nowAndTaken,
  othersAtWork,
  setLastTick,
  takeAgain,
  takeTick,
} from './schedule.ts'
import type { ScheduleTexts } from './schedule-tables.ts'

/** By the numbers in the column `state`. */
const [running, waiting] = [0, 1]

/**
 * Takes a tick, or says why not, in a transaction at READ COMMITTED. Asked again with the same token, it answers the
 * same. The schedule's row is locked first, without waiting: everything below is decided under that lock.
 */
export async function takeTickIn(
  transaction: Executor,
  texts: ScheduleTexts,
  id: string,
  claim: TickClaim,
): Promise<ClaimAnswer> {
  const { manual, token, retake, most, overlap, run, afterUs } = claim
  const [schedule] = await transaction.query(lockSchedule(texts, id))
  if (schedule === undefined) return { kind: 'busy' }
  // After the lock: what others finished before we had it lies before this moment.
  const [asked] = await transaction.query(nowAndTaken(texts, id, token))
  const now = Number(asked?.['nowUs'])
  const atUs = claim.atUs ?? numberIn(asked, 'tick_at') ?? now
  const lastUs = Number(schedule['last_tick'])
  if (numberIn(schedule, 'paused_at') !== undefined && !manual) return { kind: 'paused' }
  // What the caller has seen is not here: it was told by a server that has been replaced since.
  if (afterUs !== undefined && afterUs > lastUs) return { kind: 'busy' }
  if (atUs > now) return { kind: 'early', inMs: Math.ceil((atUs - now) / 1_000) }

  const key = { atUs, manual }
  const claimed = (attempt: number): ClaimAnswer => ({ kind: 'claimed', attempt, atUs, nowUs: now })
  const tick = await lockedTick(transaction, texts, id, key)
  if (tick === 'guarded') return { kind: 'busy' }
  if (tick !== undefined) {
    const [state, attempt] = [Number(tick['state']), Number(tick['attempt'])]
    if (state === running && tick['token'] === token) return claimed(attempt)
    if (state > waiting || Number(tick['lease_until']) > now) return { kind: 'taken' }
    if ((state === running && !retake) || attempt >= most) {
      await transaction.query(loseTick(texts, id, key))
      return { kind: 'lost' }
    }
  } else if (!manual && atUs <= lastUs) return { kind: 'passed' }

  // A manual tick, one that is owed another attempt, and one that passes over others are not dropped.
  let isSkipped = !run
  if (run && overlap !== 'allow') {
    const [others] = await transaction.query(othersAtWork(texts, id, atUs, now))
    const isDropped = overlap === 'skip' && !manual && tick === undefined
    if (isDropped && Number(others?.['wasAtWork']) === 1) isSkipped = true
    else if (Number(others?.['atWork']) === 1) return { kind: 'busy' }
  }
  const taken = { ...claim, key, now }
  if (tick !== undefined) {
    await transaction.query(takeAgain(texts, id, taken))
    return isSkipped ? { kind: 'skipped' } : claimed(Number(tick['attempt']) + 1)
  }
  await transaction.query(takeTick(texts, id, taken, claim.missed, isSkipped))
  if (!manual) await transaction.query(setLastTick(texts, id, atUs))
  return isSkipped ? { kind: 'skipped' } : claimed(1)
}

/** Somebody may guard it, and that is not waited for while the schedule is locked. */
async function lockedTick(
  transaction: Executor,
  texts: ScheduleTexts,
  id: string,
  key: { readonly atUs: number; readonly manual: boolean },
): Promise<Row | 'guarded' | undefined> {
  try {
    return (await transaction.query(lockTick(texts, id, key)))[0]
  } catch (error) {
    if (waitEndedBy(error) === undefined) throw error
    return 'guarded'
  }
}

/** Nothing of NULL. */
export function numberIn(row: Row | undefined, column: string): number | undefined {
  const value = row?.[column]
  return value === null || value === undefined ? undefined : Number(value)
}

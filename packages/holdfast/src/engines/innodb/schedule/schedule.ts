import type { Statement, Value } from '../../../core/driver.ts'
import type { TickClaim, TickKey } from '../../../schedule/engine.ts'
import { nowUs, span, spanOf } from '../sql/clock.ts'
import { limited } from '../sql/text.ts'
import type { ScheduleTexts } from './schedule-tables.ts'

/** Statements about schedules and ticks; `id` is how the row of a schedule is called. */

export function readSchedule({ schedule }: ScheduleTexts, id: string): Statement {
  const text = `SELECT last_tick, paused_at, rule FROM ${schedule} WHERE id = ?`
  return { text, values: [id] }
}

/** @throws 1062 if it is there */
export function newSchedule(
  { schedule }: ScheduleTexts,
  id: string,
  name: string,
  fromEver: boolean,
): Statement {
  const text = `INSERT INTO ${schedule} (id, name, last_tick) VALUES (?, ?, ${fromEver ? '0' : nowUs})`
  return { text, values: [id, name] }
}

/** What the clock says, and the open tick whose lease ends first. */
export function openTick({ tick }: ScheduleTexts, id: string): Statement {
  const text = `SELECT CAST(${nowUs} AS CHAR) AS nowUs, t.tick_at, t.by_hand, t.lease_until
FROM (SELECT 1 AS one) o LEFT JOIN (
  SELECT tick_at, by_hand, lease_until FROM ${tick} WHERE id = ? AND state < 2
  ORDER BY lease_until LIMIT 1
) t ON TRUE`
  return { text, values: [id] }
}

/** Not there while somebody takes a tick, or works on one in a transaction. */
export function lockSchedule({ schedule }: ScheduleTexts, id: string): Statement {
  const text = `SELECT last_tick, paused_at, rule FROM ${schedule} WHERE id = ? FOR UPDATE SKIP LOCKED`
  return { text, values: [id] }
}

/** The same, waiting for it. */
export function awaitSchedule({ schedule }: ScheduleTexts, id: string, limitMs: number): Statement {
  const { before, hint } = limited(limitMs)
  const text = `${before}SELECT ${hint}paused_at FROM ${schedule} WHERE id = ? FOR UPDATE`
  return { text, values: [id] }
}

/** What the clock says now that the schedule is locked, and the manual tick that this token has already. */
export function nowAndTaken({ tick }: ScheduleTexts, id: string, token: string): Statement {
  const text = `SELECT CAST(${nowUs} AS CHAR) AS nowUs, (
  SELECT tick_at FROM ${tick} WHERE id = ? AND state = 0 AND by_hand = 1 AND token = ? LIMIT 1
) AS tick_at`
  return { text, values: [id, token] }
}

const isTick = `id = ? AND tick_at = ${span} AND by_hand = ?`

function keyOf(id: string, { atUs, manual }: Omit<TickKey, 'name'>): readonly Value[] {
  return [id, String(atUs), manual ? 1 : 0]
}

/** Fails at once if somebody guards it. */
export function lockTick(
  { tick }: ScheduleTexts,
  id: string,
  key: Omit<TickKey, 'name'>,
): Statement {
  const text = `SELECT state, attempt, token, lease_until FROM ${tick} WHERE ${isTick} FOR UPDATE NOWAIT`
  return { text, values: keyOf(id, key) }
}

/** Keeps it as it is until the transaction ends. */
export function shareTick(
  { tick }: ScheduleTexts,
  id: string,
  key: Omit<TickKey, 'name'>,
): Statement {
  const text = `SELECT state, token FROM ${tick} WHERE ${isTick} LOCK IN SHARE MODE`
  return { text, values: keyOf(id, key) }
}

/** Whether one is at work at this moment, and whether one was when the instant of another came. */
export function othersAtWork(
  { tick }: ScheduleTexts,
  id: string,
  atUs: number,
  now: number,
): Statement {
  const text = `SELECT EXISTS (
  SELECT 1 FROM ${tick} WHERE id = ? AND state = 0 AND lease_until > ${span}
) AS atWork, EXISTS (
  SELECT 1 FROM ${tick} WHERE id = ? AND started_at <= ${span} AND state <> 5
    AND (finished_at > ${span} OR state = 0 AND lease_until > ${span})
) AS wasAtWork`
  const [at, moment] = [String(atUs), String(now)]
  return { text, values: [id, moment, id, at, at, moment] }
}

/** Nobody was at work any more when its lease ended. */
export function loseTick(
  { tick }: ScheduleTexts,
  id: string,
  key: Omit<TickKey, 'name'>,
): Statement {
  const text = `UPDATE ${tick} SET finished_at = lease_until, state = 4 WHERE ${isTick}`
  return { text, values: keyOf(id, key) }
}

/** What a tick is taken with. */
interface TakenTick extends Pick<TickClaim, 'token' | 'holder' | 'leaseMs'> {
  readonly key: Omit<TickKey, 'name'>
  readonly now: number
}

export function takeAgain(
  { tick }: ScheduleTexts,
  id: string,
  { key, token, holder, leaseMs, now }: TakenTick,
): Statement {
  const text = `UPDATE ${tick} SET state = 0, attempt = attempt + 1, token = ?, holder = ?,
  started_at = ${span}, finished_at = NULL, lease_until = ${span} + ${span} WHERE ${isTick}`
  const moment = String(now)
  return { text, values: [token, holder, moment, moment, spanOf(leaseMs), ...keyOf(id, key)] }
}

/** A new one, at work or skipped. */
export function takeTick(
  { tick }: ScheduleTexts,
  id: string,
  { key, token, holder, leaseMs, now }: TakenTick,
  missed: number,
  isSkipped: boolean,
): Statement {
  const text = `INSERT INTO ${tick} (id, tick_at, by_hand, state, attempt, token, holder, started_at,
  finished_at, lease_until, missed)
VALUES (?, ${span}, ?, ?, ?, ?, ?, ${span}, ${isSkipped ? span : 'NULL'}, ${isSkipped ? 'NULL' : span}, ?)`
  const moment = String(now)
  const end = isSkipped ? moment : String(now + Number(spanOf(leaseMs)))
  const [state, attempt] = isSkipped ? [5, 0] : [0, 1]
  return { text, values: [...keyOf(id, key), state, attempt, token, holder, moment, end, missed] }
}

export function setLastTick({ schedule }: ScheduleTexts, id: string, atUs: number): Statement {
  const text = `UPDATE ${schedule} SET last_tick = ${span} WHERE id = ?`
  return { text, values: [String(atUs), id] }
}

export function renewTick(
  { tick }: ScheduleTexts,
  id: string,
  key: TickKey,
  token: string,
  leaseMs: number,
): Statement {
  const text = `UPDATE ${tick} SET lease_until = ${nowUs} + ${span} WHERE ${isTick} AND token = ? AND state = 0`
  return { text, values: [spanOf(leaseMs), ...keyOf(id, key), token] }
}

/** Answers the same when it is asked again: a state is written over itself. */
export function endTick(
  { tick }: ScheduleTexts,
  id: string,
  key: TickKey,
  token: string,
  { state, error, retryMs }: { state: number; error: string | undefined; retryMs: number },
): Statement {
  const text = `UPDATE ${tick} SET finished_at = ${nowUs}, error = ?,
  lease_until = ${state === 1 ? `${nowUs} + ${span}` : 'NULL'}, state = ${Math.trunc(state)}
WHERE ${isTick} AND token = ? AND state IN (0, ${Math.trunc(state)})`
  const retry = state === 1 ? [spanOf(retryMs)] : []
  return { text, values: [error ?? null, ...retry, ...keyOf(id, key), token] }
}

/** Ended ones older than the latest `keep`. Not those that somebody guards; at once no more than that. */
export function pastTicks({ tick }: ScheduleTexts, id: string, keep: number): Statement {
  const text = `SELECT tick_at, by_hand FROM ${tick} WHERE id = ? AND state > 1 AND tick_at < (
  SELECT k.tick_at FROM (
    SELECT tick_at FROM ${tick} WHERE id = ? ORDER BY tick_at DESC LIMIT 1 OFFSET ${Math.max(0, Math.trunc(keep) - 1)}
  ) k
) LIMIT 100 FOR UPDATE SKIP LOCKED`
  return { text, values: [id, id] }
}

export function forgetTick(
  { tick }: ScheduleTexts,
  id: string,
  key: Omit<TickKey, 'name'>,
): Statement {
  return { text: `DELETE FROM ${tick} WHERE ${isTick}`, values: keyOf(id, key) }
}

/** The schedule is locked. What fell into a pause is passed over. */
export function setPaused({ schedule }: ScheduleTexts, id: string, pause: boolean): Statement {
  const set = pause
    ? `paused_at = ${nowUs}`
    : `paused_at = NULL, last_tick = GREATEST(last_tick, ${nowUs})`
  return { text: `UPDATE ${schedule} SET ${set} WHERE id = ?`, values: [id] }
}

export function noteRule({ schedule }: ScheduleTexts, id: string, rule: string | null): Statement {
  return { text: `UPDATE ${schedule} SET rule = LEFT(?, 1000) WHERE id = ?`, values: [rule, id] }
}

export function readTicks({ tick }: ScheduleTexts, id: string, most: number): Statement {
  const text = `SELECT tick_at, by_hand, state, attempt, holder, started_at, finished_at, missed, error
FROM ${tick} WHERE id = ? ORDER BY tick_at DESC LIMIT ${Math.trunc(most)}`
  return { text, values: [id] }
}

import type { Statement, Value } from '../../../core/driver.ts'
import type { TickClaim, TickKey } from '../../../schedule/engine.ts'
import { clockStepUs, nowUs, spanOf } from '../sql/clock.ts'
import { plain } from '../tx/transaction.ts'

/** Statements about schedules, and their ticks by scheduled instant. */

export const scheduleTables: readonly Statement[] = [
  plain(`CREATE TABLE IF NOT EXISTS holdfast_schedule (
  name TEXT PRIMARY KEY NOT NULL,
  -- The latest tick that was taken or passed over; 0 if all of them are still to come. It only goes up.
  last_tick INTEGER NOT NULL,
  paused_at INTEGER,
  rule TEXT
) STRICT`),
  plain(`CREATE TABLE IF NOT EXISTS holdfast_tick (
  name TEXT NOT NULL,
  -- The scheduled instant; of a manual one, when it was asked for.
  tick_at INTEGER NOT NULL,
  by_hand INTEGER NOT NULL,
  -- 0 running, 1 failed and waiting for another attempt, 2 done, 3 failed, 4 lost, 5 skipped
  state INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  -- The fence: whoever has another one than this has lost the tick.
  token TEXT NOT NULL,
  holder TEXT NOT NULL,
  -- Of a running one the end of its lease, of a waiting one when it may be tried again.
  lease_until INTEGER,
  started_at INTEGER NOT NULL,
  finished_at INTEGER,
  missed INTEGER NOT NULL,
  error TEXT,
  PRIMARY KEY (name, tick_at, by_hand)
) STRICT`),
  plain(
    'CREATE INDEX IF NOT EXISTS holdfast_tick_open ON holdfast_tick (name, lease_until) WHERE state < 2',
  ),
]

/** Takes the right to write in a transaction that is open. */
export const touchTicks: Statement = plain('UPDATE main.holdfast_tick SET state = state WHERE 0')

export function readSchedule(name: string): Statement {
  const text = `SELECT last_tick, paused_at, rule, ${nowUs} AS nowUs FROM main.holdfast_schedule WHERE name = ?`
  return { text, values: [name] }
}

/** Unless somebody else has made it. */
export function newSchedule(name: string, fromEver: boolean): Statement {
  const text = `INSERT INTO main.holdfast_schedule (name, last_tick) VALUES (?, ${fromEver ? '0' : nowUs})
ON CONFLICT (name) DO NOTHING`
  return { text, values: [name] }
}

/** The open tick whose lease ends first. */
export function openTick(name: string): Statement {
  const text = `SELECT tick_at, by_hand, lease_until FROM main.holdfast_tick WHERE name = ? AND state < 2
ORDER BY lease_until LIMIT 1`
  return { text, values: [name] }
}

/** The manual tick that this token has already. */
export function takenByHand(name: string, token: string): Statement {
  const text = `SELECT tick_at FROM main.holdfast_tick WHERE name = ? AND state = 0 AND by_hand = 1 AND token = ?`
  return { text, values: [name, token] }
}

/** When a tick by hand is, of which there may be several in the one millisecond that the clock tells. */
export function momentByHand(name: string, now: number): Statement {
  const text = `SELECT MAX(tick_at) + 1 AS tick_at FROM main.holdfast_tick
WHERE name = ? AND by_hand = 1 AND tick_at BETWEEN ? AND ?`
  return { text, values: [name, now, now + clockStepUs - 2] }
}

const isTick = 'name = ? AND tick_at = ? AND by_hand = ?'

function keyOf({ name, atUs, manual }: TickKey): readonly Value[] {
  return [name, atUs, manual ? 1 : 0]
}

export function readTick(key: TickKey): Statement {
  const text = `SELECT state, attempt, token, lease_until FROM main.holdfast_tick WHERE ${isTick}`
  return { text, values: keyOf(key) }
}

/** Whether one is at work at this moment, and whether one was when the instant of another came. */
export function othersAtWork(name: string, atUs: number, now: number): Statement {
  const text = `SELECT EXISTS (
  SELECT 1 FROM main.holdfast_tick WHERE name = ? AND state = 0 AND lease_until > ?
) AS atWork, EXISTS (
  SELECT 1 FROM main.holdfast_tick WHERE name = ? AND started_at <= ? AND state <> 5
    AND (finished_at > ? OR state = 0 AND lease_until > ?)
) AS wasAtWork`
  return { text, values: [name, now, name, atUs, atUs, now] }
}

/** Nobody was at work any more when its lease ended. */
export function loseTick(key: TickKey): Statement {
  const text = `UPDATE main.holdfast_tick SET finished_at = lease_until, state = 4 WHERE ${isTick}`
  return { text, values: keyOf(key) }
}

/** What a tick is taken with. */
interface TakenTick extends Pick<TickClaim, 'token' | 'holder' | 'leaseMs'> {
  readonly key: TickKey
  readonly now: number
}

export function takeAgain({ key, token, holder, leaseMs, now }: TakenTick): Statement {
  const text = `UPDATE main.holdfast_tick SET state = 0, attempt = attempt + 1, token = ?, holder = ?,
  started_at = ?, finished_at = NULL, lease_until = ? WHERE ${isTick}`
  return { text, values: [token, holder, now, now + spanOf(leaseMs), ...keyOf(key)] }
}

/** A new one, at work or skipped. */
export function takeTick(
  { key, token, holder, leaseMs, now }: TakenTick,
  missed: number,
  isSkipped: boolean,
): Statement {
  const text = `INSERT INTO main.holdfast_tick (name, tick_at, by_hand, state, attempt, token, holder, started_at,
  finished_at, lease_until, missed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
  const [state, attempt, finished, until] = isSkipped
    ? [5, 0, now, null]
    : [0, 1, null, now + spanOf(leaseMs)]
  return {
    text,
    values: [...keyOf(key), state, attempt, token, holder, now, finished, until, missed],
  }
}

export function setLastTick({ name, atUs }: TickKey): Statement {
  return {
    text: 'UPDATE main.holdfast_schedule SET last_tick = ? WHERE name = ?',
    values: [atUs, name],
  }
}

export function renewTick(key: TickKey, token: string, leaseMs: number): Statement {
  const text = `UPDATE main.holdfast_tick SET lease_until = ${nowUs} + ? WHERE ${isTick} AND token = ? AND state = 0`
  return { text, values: [spanOf(leaseMs), ...keyOf(key), token] }
}

/** Answers the same when it is asked again: a state is written over itself. */
export function endTick(
  key: TickKey,
  token: string,
  { state, error, retryMs }: { state: number; error: string | undefined; retryMs: number },
): Statement {
  const text = `UPDATE main.holdfast_tick SET finished_at = ${nowUs}, error = ?,
  lease_until = IIF(? = 1, ${nowUs} + ?, NULL), state = ?
WHERE ${isTick} AND token = ? AND state IN (0, ?)`
  const values = [error ?? null, state, spanOf(retryMs), state, ...keyOf(key), token, state]
  return { text, values }
}

/** Ended ones older than the latest `keep`; at once no more than that. */
export function forgetTicks(name: string, keep: number): Statement {
  const text = `DELETE FROM main.holdfast_tick WHERE rowid IN (
  SELECT rowid FROM main.holdfast_tick WHERE name = ? AND state > 1 AND tick_at < (
    SELECT tick_at FROM main.holdfast_tick WHERE name = ? ORDER BY tick_at DESC LIMIT 1 OFFSET ?
  ) LIMIT 100)`
  return { text, values: [name, name, Math.max(0, keep - 1)] }
}

/** What fell into a pause is passed over. */
export function setPaused(name: string, pause: boolean): Statement {
  const set = pause
    ? `paused_at = ${nowUs}`
    : `paused_at = NULL, last_tick = MAX(last_tick, ${nowUs})`
  return { text: `UPDATE main.holdfast_schedule SET ${set} WHERE name = ?`, values: [name] }
}

export function noteRule(name: string, rule: string | null): Statement {
  const text = 'UPDATE main.holdfast_schedule SET rule = SUBSTR(?, 1, 1000) WHERE name = ?'
  return { text, values: [rule, name] }
}

export function readTicks(name: string, most: number): Statement {
  const text = `SELECT tick_at, by_hand, state, attempt, holder, started_at, finished_at, missed, error
FROM main.holdfast_tick WHERE name = ? ORDER BY tick_at DESC LIMIT ?`
  return { text, values: [name, most] }
}

import type { TickClaim, TickKey } from '../../../schedule/engine.ts'
import { type Argument, type FunctionCall, functionCall } from '../sql/function-call.ts'

/** What `claim_tick` is told. */
interface StoredClaim extends Omit<TickClaim, 'overlap'> {
  /** 0 skip, 1 wait, 2 allow. */
  readonly overlap: number
}

export function lookAtSchedule(schema: string, name: string, fromEver: boolean): FunctionCall {
  return functionCall(
    schema,
    'look_at_schedule',
    [
      ['text', name],
      ['bool', fromEver],
    ],
    [name],
  )
}

export function claimTick(schema: string, claim: StoredClaim): FunctionCall {
  return functionCall(
    schema,
    'claim_tick',
    [
      ['text', claim.name],
      instant(claim.atUs),
      ['bool', claim.manual],
      ['uuid', claim.token],
      ['text', claim.holder],
      ['int8', claim.leaseMs],
      ['int4', claim.overlap],
      ['bool', claim.retake],
      ['int4', claim.most],
      ['int4', claim.missed],
      ['bool', claim.run],
      instant(claim.afterUs),
    ],
    [claim.name],
  )
}

export function renewTick(
  schema: string,
  tick: TickKey,
  token: string,
  leaseMs: number,
): FunctionCall {
  return functionCall(
    schema,
    'renew_tick',
    [...keyOf(tick), ['uuid', token], ['int8', leaseMs]],
    [tick.name],
  )
}

export function guardTick(schema: string, tick: TickKey, token: string): FunctionCall {
  return functionCall(schema, 'guard_tick', [...keyOf(tick), ['uuid', token]], [tick.name])
}

export function finishTick(
  schema: string,
  tick: TickKey,
  token: string,
  error: string | undefined,
  retryMs: number | undefined,
  keep: number,
): FunctionCall {
  return functionCall(
    schema,
    'finish_tick',
    [
      ...keyOf(tick),
      ['uuid', token],
      ['text', error ?? null],
      ['int8', retryMs ?? null],
      ['int4', keep],
    ],
    [tick.name],
  )
}

export function pauseSchedule(
  schema: string,
  name: string,
  pause: boolean,
  limitMs: number,
): FunctionCall {
  return functionCall(
    schema,
    'pause_schedule',
    [
      ['text', name],
      ['bool', pause],
    ],
    [name],
    { limitMs, yields: true, budgetMs: undefined },
  )
}

/** `rule` is JSON, or null for a schedule that ticks only when it is asked to. */
export function noteSchedule(schema: string, name: string, rule: string | null): FunctionCall {
  return functionCall(
    schema,
    'note_schedule',
    [
      ['text', name],
      ['text', rule],
    ],
    [name],
  )
}

export function requestTick(schema: string, name: string, holder: string): FunctionCall {
  return functionCall(
    schema,
    'request_tick',
    [
      ['text', name],
      ['text', holder],
    ],
    [name],
  )
}

export function readTicks(schema: string, name: string, most: number): FunctionCall {
  return functionCall(
    schema,
    'read_ticks',
    [
      ['text', name],
      ['int4', most],
    ],
    [name],
  )
}

function keyOf({ name, atUs, manual }: TickKey): Argument[] {
  return [['text', name], instant(atUs), ['bool', manual]]
}

/** A text that PostgreSQL reads exactly, in whatever style and zone the session is. */
function instant(atUs: number | undefined): Argument {
  if (atUs === undefined) return ['timestamptz', null]
  const iso = new Date(Math.floor(atUs / 1_000)).toISOString()
  return ['timestamptz', `${iso.slice(0, -1)}${String(atUs % 1_000).padStart(3, '0')}Z`]
}

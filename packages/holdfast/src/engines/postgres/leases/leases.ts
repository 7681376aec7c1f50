import type { HeldLeaseName, LeaseName, LeaseRequest, LeaseToken } from '../../../leases/engine.ts'
import { type FunctionCall, functionCall } from '../sql/function-call.ts'

/** See `sql/app/acquire_lease.sql`. */
export function acquireLease(schema: string, request: LeaseRequest): FunctionCall {
  const { scope, name, owner, ttlMs, delayMs, note, sessionLock } = request
  return functionCall(
    schema,
    'acquire_lease',
    [
      ['text', scope],
      ['text', name],
      ['uuid', owner],
      ['int8', ttlMs],
      ['int8', delayMs],
      ['text', note ?? null],
      ['int8', sessionLock === undefined ? null : String(sessionLock)],
    ],
    [scope],
  )
}

function ofHolder(schema: string, verb: string, held: HeldLeaseName): FunctionCall {
  const { scope, name, owner, token, sessionLock } = held
  return functionCall(
    schema,
    verb,
    [
      ['text', scope],
      ['text', name],
      ['uuid', owner],
      ['int8', String(token)],
      ['int8', sessionLock === undefined ? null : String(sessionLock)],
    ],
    [scope],
  )
}

/** See `sql/app/renew_lease.sql`. */
export function renewLease(schema: string, held: HeldLeaseName): FunctionCall {
  return ofHolder(schema, 'renew_lease', held)
}

/** See `sql/app/release_lease.sql`. */
export function releaseLease(schema: string, held: HeldLeaseName): FunctionCall {
  return ofHolder(schema, 'release_lease', held)
}

/** See `sql/app/guard_lease.sql`. */
export function guardLease(schema: string, { scope, name, token }: LeaseToken): FunctionCall {
  return functionCall(
    schema,
    'guard_lease',
    [
      ['text', scope],
      ['text', name],
      ['int8', String(token)],
    ],
    [scope],
  )
}

/** See `sql/app/read_lease.sql`. */
export function readLease(schema: string, { scope, name }: LeaseName): FunctionCall {
  return functionCall(
    schema,
    'read_lease',
    [
      ['text', scope],
      ['text', name],
    ],
    [scope],
  )
}

/** See `sql/app/forget_leases.sql`. */
export function forgetLeases(schema: string, idleMs: number, most: number): FunctionCall {
  return functionCall(schema, 'forget_leases', [
    ['int8', idleMs],
    ['int4', most],
  ])
}

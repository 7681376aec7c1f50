import { inspect } from 'node:util'
import type { FlowOutcome, Trouble } from '../core/model.ts'

/** How a flow that returned is remembered: its value as text. */
export function returned(value: unknown): FlowOutcome {
  return { kind: 'returned', value: valueText(value) }
}

export function threw(reason: unknown): FlowOutcome {
  if (!(reason instanceof Error))
    return { kind: 'threw', name: typeof reason, message: String(reason) }
  const sqlstate = sqlstateOf(reason)
  return {
    kind: 'threw',
    name: reason.name,
    message: reason.message,
    ...(sqlstate !== undefined && { sqlstate }),
  }
}

function valueText(value: unknown): string {
  if (value === undefined) return 'undefined'
  try {
    return JSON.stringify(value, plain) ?? inspect(value)
  } catch {
    return inspect(value)
  }
}

function plain(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (isResult(value)) return { rows: value.rows, rowCount: value.rowCount }
  if (value instanceof Map || value instanceof Set) return [...(value as Iterable<unknown>)]
  return value
}

/** A result of node-postgres: the rest of it is about types. */
function isResult(value: unknown): value is { rows: unknown[]; rowCount: unknown } {
  return (
    typeof value === 'object' &&
    value !== null &&
    Array.isArray(Reflect.get(value, 'rows')) &&
    typeof Reflect.get(value, 'command') === 'string'
  )
}

/** Clients bury the server's code at different depths. */
function sqlstateOf(reason: unknown, depth: number = 0): string | undefined {
  if (typeof reason !== 'object' || reason === null || depth > 5) return undefined
  for (const key of ['code', 'originalCode', 'sqlState']) {
    const code: unknown = Reflect.get(reason, key)
    if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^P\d{4}$/.test(code))
      return code
  }
  for (const key of ['cause', 'driverError', 'meta', 'driverAdapterError', 'original']) {
    const found = sqlstateOf(Reflect.get(reason, key), depth + 1)
    if (found !== undefined) return found
  }
  return undefined
}

/**
 * Errors that come from being kept waiting by the schedule, and say nothing about the flow: a client
 * gave up on its transaction, or on getting a connection.
 */
export function troubleIn(reason: unknown, flow: number, name: string): Trouble | undefined {
  if (!(reason instanceof Error)) return undefined
  const code: unknown = Reflect.get(reason, 'code')
  if (code === 'P2028') {
    return {
      kind: 'client-timeout',
      flow,
      message:
        `${name} was kept waiting until Prisma gave up on its transaction (P2028). ` +
        'Give the client transactionOptions: { maxWait: 60_000, timeout: 60_000 } for this test.',
    }
  }
  if (
    code === 'P2024' ||
    /timeout exceeded when trying to connect|acquiring a connection/i.test(reason.message)
  ) {
    return {
      kind: 'pool-too-small',
      flow,
      message:
        `${name} did not get a connection: ${reason.message}. ` +
        'Give each flow a pool of its own, or a pool with a connection for every flow.',
    }
  }
  if (/^Query read timeout$/.test(reason.message)) {
    return {
      kind: 'client-timeout',
      flow,
      message: `${name} was kept waiting until its query_timeout. Leave query_timeout unset for this test.`,
    }
  }
  return undefined
}

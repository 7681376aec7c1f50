import { inspect } from 'node:util'
import type { FlowOutcome, Said, Trouble } from '../core/model.ts'
import { sqlstateOf } from './error-layers.ts'
import { saidBy, saidByError } from './said.ts'

/** How a flow that returned is remembered: its value as text, and what that says unless somebody knows it better. */
export function returned(answer: unknown, said: Said = saidBy(answer)): FlowOutcome {
  return { kind: 'returned', value: valueText(answer), said }
}

export function threw(error: unknown, said?: Said): FlowOutcome {
  if (!(error instanceof Error)) {
    return {
      kind: 'threw',
      name: typeof error,
      message: valueText(error),
      said: said ?? saidBy(error),
    }
  }
  const sqlstate = sqlstateOf(error)
  return {
    kind: 'threw',
    name: error.name,
    message: error.message,
    said: said ?? saidByError(error, sqlstate),
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
  if (value instanceof Response) return { status: value.status }
  if (isResult(value)) return { rows: value.rows, rowCount: value.rowCount }
  if (value instanceof Map || value instanceof Set) return [...(value as Iterable<unknown>)]
  if (value instanceof Error)
    return Object.assign({}, value, { name: value.name, message: value.message })
  // What JSON would leave out, or make alike.
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  if (typeof value === 'function' || typeof value === 'symbol') return inspect(value)
  const isBare = typeof value === 'object' && value !== null && Object.keys(value).length === 0
  return isBare && !isPlain(value) ? inspect(value) : value
}

function isPlain(value: object): boolean {
  const kind: unknown = Object.getPrototypeOf(value)
  return Array.isArray(value) || kind === Object.prototype || kind === null
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

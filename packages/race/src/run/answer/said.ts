import type { Said } from '../../core/model.ts'
import { messagesOf } from './error-layers.ts'

/** How a flow ended: what it returned, or what it threw. */
export type FlowEnd = { readonly answer: unknown } | { readonly error: unknown }

/** The user's own word on an answer or an error; undefined leaves it to the rules below. */
export type Classify = (end: FlowEnd) => Said | undefined

/**
 * A status of HTTP says it itself. 503 means that nothing was done and that one may try again. Verdicts of the ledger
 * say whether they are `ok`, and so does the body of many an answer with the status 200.
 */
export function saidBy(answer: unknown): Said {
  const status = statusOf(answer)
  if (status === undefined) return saysNo(answer) ? 'refused' : 'accepted'
  const said = saidByStatus(status)
  const body: unknown = isObject(answer) ? Reflect.get(answer, 'body') : undefined
  return said === 'accepted' && saysNo(body) ? 'refused' : said
}

function saysNo(answer: unknown): boolean {
  return isObject(answer) && ['ok', 'success'].some((name) => Reflect.get(answer, name) === false)
}

/**
 * Errors that the program throws are its way to say no. Those that the language throws by itself are accidents, and so
 * are those of the server, unless they come of concurrency or of a rule: a constraint (23), a serialization failure or
 * deadlock (40), a lock not available (55), a cancelled statement (57), RAISE (P0).
 */
export function saidByError(error: Error, sqlstate: string | undefined): Said {
  if (sqlstate !== undefined) {
    // Two that make the same table meet in the server's own: nobody's rule.
    const ofCatalogue = /constraint "pg_/.test(messagesOf(error))
    return /^(23|40|55|57|P0)/.test(sqlstate) && !ofCatalogue ? 'refused' : 'failed'
  }
  const status = statusOf(error)
  if (status !== undefined) return saidByStatus(status)
  return accidents.has(error.name) ? 'failed' : 'refused'
}

const accidents = new Set([
  'TypeError',
  'ReferenceError',
  'RangeError',
  'SyntaxError',
  'URIError',
  'EvalError',
  'AssertionError',
])

function saidByStatus(status: number): Said {
  if (status === 503 || (status >= 400 && status < 500)) return 'refused'
  return status >= 500 ? 'failed' : 'accepted'
}

/** By any of the names under which frameworks keep it. */
function statusOf(value: unknown): number | undefined {
  if (!isObject(value)) return undefined
  for (const key of ['status', 'statusCode']) {
    const status: unknown = Reflect.get(value, key)
    if (typeof status === 'number' && status >= 100 && status < 600) return status
  }
  return undefined
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

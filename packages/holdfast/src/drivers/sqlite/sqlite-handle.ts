import { holdfastError } from '../../core/errors.ts'
import type { SqliteLeash } from './sqlite-leash.ts'

type Call = (...args: unknown[]) => unknown

/** Take a text: the connections of `node:sqlite` and `better-sqlite3` have the first two, the latter the third. */
const sending: ReadonlySet<PropertyKey> = new Set(['prepare', 'exec', 'pragma'])
const ending: ReadonlySet<PropertyKey> = new Set([
  'close',
  'open',
  'deserialize',
  Symbol.dispose,
  Symbol.asyncDispose,
])
/** Statements that nobody could hold back. */
const unheld: ReadonlySet<PropertyKey> = new Set(['createTagStore'])
const running: ReadonlySet<PropertyKey> = new Set(['run', 'get', 'all'])

/** A function of the client, bound to it: its methods must not meet the proxy. */
function callOf(target: object, property: PropertyKey): Call | undefined {
  const value: unknown = Reflect.get(target, property)
  return typeof value === 'function' && property !== 'constructor'
    ? (value as Call).bind(target)
    : undefined
}

/** A connection for a body: everything of it, but what it sends passes the leash. */
export function leashedConnection<Tx extends object>(native: Tx, leash: SqliteLeash): Tx {
  const handle: Tx = new Proxy(native, {
    get(target, property) {
      const call = callOf(target, property)
      if (call === undefined) return Reflect.get(target, property)
      if (ending.has(property)) return () => leash.assertMayEnd()
      if (unheld.has(property)) {
        return () => {
          const subject = `${String(property)} in a body`
          throw holdfastError('ENGINE_NOT_OFFERED', { details: { subject } })
        }
      }
      if (property === 'transaction') return nestedBy(call, leash)
      return (...args: unknown[]) => {
        if (!sending.has(property)) return leash.calling(() => call(...args))
        leash.assertMay(property === 'pragma' ? `PRAGMA ${String(args[0])}` : args[0])
        const answer = leash.during(() => call(...args))
        if (property !== 'prepare') return answer
        return leashedStatement(answer as object, leash, handle)
      }
    },
  })
  return handle
}

/** `transaction` of better-sqlite3, which is a savepoint in a body, in each of its variants. */
function nestedBy(make: Call, leash: SqliteLeash): Call {
  return (...args) => {
    leash.assertHeld()
    const made = make(...args) as Call & Readonly<Record<(typeof variants)[number], Call>>
    const held =
      (call: Call): Call =>
      (...inner) =>
        leash.around(() => call(...inner))
    return Object.assign(
      held(made),
      Object.fromEntries(variants.map((variant) => [variant, held(made[variant])])),
    )
  }
}

const variants = ['default', 'deferred', 'immediate', 'exclusive'] as const

function leashedStatement(native: object, leash: SqliteLeash, connection: object): object {
  // Not over the statement itself, whose fixed properties a proxy would have to give as they are.
  const statement: object = new Proxy(
    Object.create(Object.getPrototypeOf(native) as object) as object,
    {
      get(_, property) {
        // Of better-sqlite3.
        if (property === 'database') return connection
        const call = callOf(native, property)
        if (call === undefined) return Reflect.get(native, property) as unknown
        if (running.has(property)) return (...args: unknown[]) => leash.during(() => call(...args))
        if (property === 'iterate') {
          return (...args: unknown[]) =>
            leashedRows(leash.during(() => call(...args)) as Iterator<unknown>, leash)
        }
        return (...args: unknown[]) => {
          leash.assertHeld()
          const answer = call(...args)
          // Calls that set something up can be chained.
          return answer === native ? statement : answer
        }
      },
    },
  )
  return statement
}

function leashedRows(rows: Iterator<unknown>, leash: SqliteLeash): IterableIterator<unknown> {
  const ended = leash.reading(() => rows.return?.())
  const seen = (step: IteratorResult<unknown>): IteratorResult<unknown> => {
    if (step.done === true) ended()
    return step
  }
  return {
    next: () => leash.during(() => seen(rows.next())),
    return: () => {
      ended()
      return rows.return?.() ?? { done: true, value: undefined }
    },
    [Symbol.iterator]() {
      return this
    },
  }
}

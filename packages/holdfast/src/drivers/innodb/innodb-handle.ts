import { type EventEmitter, errorMonitor } from 'node:events'
import type { Executor, Row, Statement, TransactionState } from '../../core/driver.ts'
import { processWide } from '../../core/process-wide.ts'
import type { InnodbTransaction } from '../../engines/innodb/driver.ts'
import { nothing } from '../../engines/innodb/tx/transaction.ts'
import { withSavepoint } from '../../engines/innodb/tx/savepoint.ts'
import { cancelOn, type InnodbConnection } from './innodb-connection.ts'
import type { InnodbLeash } from './innodb-leash.ts'

type Call = (...args: unknown[]) => unknown

export const sending: ReadonlySet<PropertyKey> = new Set([
  'query',
  'execute',
  'prepare',
  'batch',
  'importFile',
])
/** Answers as a stream: nothing waits for its end. */
const streaming: ReadonlySet<PropertyKey> = new Set(['queryStream'])
/** Gives a connection back to its pool; `await using` does it at the end of a block. */
export const givingBack: ReadonlySet<PropertyKey> = new Set([
  'release',
  'destroy',
  Symbol.dispose,
  Symbol.asyncDispose,
])
export const ending: ReadonlySet<PropertyKey> = new Set([
  ...givingBack,
  'commit',
  'rollback',
  'end',
  'close',
  'reset',
  'resetSession',
  'changeUser',
])

/** Handles of bodies that run: their transaction is open, or the leash says what became of it. */
const leashed = /* @__PURE__ */ processWide(
  'innodb-leashed/2',
  () => new WeakMap<object, InnodbLeash>(),
)

/** For a handle of a body that a client has made itself. */
export function noteLeashed(handle: object, leash: InnodbLeash): void {
  leashed.set(handle, leash)
}

/**
 * A connection for a body: everything of it, but statements pass the leash, and only its owner gives it back. What is
 * `beneath` it by the name of a property, and sends as well, stands there as it is given.
 */
export function leashedConnection<Tx extends object>(
  native: Tx,
  leash: InnodbLeash,
  beneath: Readonly<Record<string, () => unknown>> = {},
): Tx {
  const handle = new Proxy(native, {
    get(target, property) {
      if (typeof property === 'string' && Object.hasOwn(beneath, property))
        return beneath[property]?.()
      // With the connection itself as receiver: its methods and getters must not meet the proxy.
      const value: unknown = Reflect.get(target, property)
      if (typeof value !== 'function' || property === 'constructor') return value
      const call = (value as Call).bind(target)
      if (sending.has(property)) {
        return async (...args: unknown[]) => {
          const text = textOf(args[0])
          leash.assertMay(text)
          const answer = await leash.during(() => call(...args) as Promise<unknown>)
          return property === 'prepare' ? leashedStatement(answer as object, text, leash) : answer
        }
      }
      if (streaming.has(property)) {
        return (...args: unknown[]) => {
          leash.assertMay(textOf(args[0]))
          return watched(call(...args), leash)
        }
      }
      if (property === 'beginTransaction') return async () => leash.assertMayBegin()
      if (!ending.has(property)) return call
      return (...args: unknown[]) => {
        leash.assertMayEnd()
        return call(...args)
      }
    },
  })
  noteLeashed(handle, leash)
  return handle
}

/** Runs of a statement that was prepared pass the leash like any other. */
function leashedStatement(native: object, text: string | undefined, leash: InnodbLeash): object {
  return new Proxy(native, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property)
      // Of mysql2: what is beneath it runs as well, and is held by nothing.
      if (property === 'statement') return undefined
      if (typeof value !== 'function') return value
      const call = (value as Call).bind(target)
      if (property === 'execute') {
        return async (...args: unknown[]) => {
          leash.assertMay(text)
          return await leash.during(() => call(...args) as Promise<unknown>)
        }
      }
      if (property !== 'executeStream') return call
      return (...args: unknown[]) => {
        leash.assertMay(text)
        return watched(call(...args), leash)
      }
    },
  })
}

/** A stream whose error may be a deadlock. Whether anybody else listens is none of our business. */
function watched(stream: unknown, leash: InnodbLeash): unknown {
  const { on } = (stream ?? {}) as Partial<EventEmitter>
  if (typeof on === 'function')
    on.call(stream, errorMonitor, (error: unknown) => leash.failed(error))
  return stream
}

/** What a statement is sent as: a text, or an object with one. */
export function textOf(given: unknown): string | undefined {
  const text = typeof given === 'string' ? given : (given as { readonly sql?: unknown } | null)?.sql
  return typeof text === 'string' ? text : undefined
}

/** A transaction on a connection, ours or the caller's. */
export function transactionOn<Tx extends object>(
  connection: InnodbConnection,
  native: Tx,
  server: InnodbTransaction<Tx>['server'],
  alone: Executor,
  whole?: () => object | undefined,
): InnodbTransaction<Tx> {
  return new ConnectionTransaction(connection, native, server, alone, whole)
}

/** A class, because an object with getters that is made anew each time is slow, and long in the way. */
class ConnectionTransaction<Tx extends object> implements InnodbTransaction<Tx> {
  readonly native: Tx
  readonly server: InnodbTransaction<Tx>['server']
  readonly budgetMs = undefined
  readonly beside: Executor
  readonly #connection: InnodbConnection
  readonly #whole: (() => object | undefined) | undefined

  constructor(
    connection: InnodbConnection,
    native: Tx,
    server: InnodbTransaction<Tx>['server'],
    alone: Executor,
    whole: (() => object | undefined) | undefined,
  ) {
    this.#connection = connection
    this.native = native
    this.server = server
    this.beside = alone
    this.#whole = whole
  }

  get whole(): object {
    return (this.#whole === undefined ? this.#connection.whole : this.#whole()) ?? this.native
  }

  // Of a client that hides its connection it is known only after the first statement.
  get connectionId(): number {
    return this.#connection.id
  }

  get readsFresh(): boolean {
    return this.#leash?.readsFresh === true
  }

  get #leash(): InnodbLeash | undefined {
    return leashed.get(this.native) ?? leashed.get(this.#connection.native)
  }

  state(): TransactionState {
    return this.#leash === undefined ? 'unknown' : 'open'
  }

  async isOpen(): Promise<boolean> {
    return (await this.#connection.send(nothing))[0]?.['#open'] === true
  }

  // These are taken off the object by some.
  readonly cancel = (): Promise<void> => cancelOn(this.#connection, this.beside)
  readonly query = ({ text, values }: Statement): Promise<readonly Row[]> =>
    this.#connection.send(text, values)

  async command(text: string): Promise<void> {
    await this.#connection.send(text)
  }

  async nested<T>(body: (inner: InnodbTransaction<Tx>) => Promise<T>): Promise<T> {
    return await withSavepoint(this, async () => await body(this))
  }
}

import { readFileSync } from 'node:fs'
import { holdfastError } from '../../core/errors.ts'
import { isConnectionLoss } from '../../core/sql-state.ts'
import type { Leash } from '../parts/leash.ts'
import { LeashedQueries } from './postgres-js-queries.ts'
import type { PostgresJsHandle } from './postgres-js-handle.ts'

/** What becomes of a transaction while someone holds a handle to it. */
export class Lifetime {
  readonly #lost = Promise.withResolvers<never>()
  #state: 'running' | 'lost' | 'ended' = 'running'

  constructor() {
    // Most transactions end without anybody waiting for their loss.
    this.#lost.promise.catch(() => undefined)
  }

  get lost(): boolean {
    return this.#state === 'lost'
  }

  get over(): boolean {
    return this.#state !== 'running'
  }

  /** Rejects when the connection is lost; otherwise stays pending. */
  get whenLost(): Promise<never> {
    return this.#lost.promise
  }

  lose(cause: unknown): void {
    if (this.over) return
    this.#state = 'lost'
    this.#lost.reject(holdfastError('CONNECTION_LOST', { cause }))
  }

  end(): void {
    if (!this.over) this.#state = 'ended'
  }

  /** Why a handle can no longer be used. */
  assertRunning(): void {
    if (this.#state === 'lost') throw holdfastError('CONNECTION_LOST')
    if (this.#state === 'running') return
    throw holdfastError('TX_HANDLE_ENDED')
  }

  /** Resolves if the connection is there, and never if it is lost. */
  async unlessLost(error?: unknown): Promise<void> {
    // A closed connection is announced in the same turn in which its statements fail, in any order;
    // `nextTick` runs after all of it.
    await new Promise<void>((resolve) => {
      process.nextTick(resolve)
    })
    // One that broke is closed, and announced, at the end of the turn in which statements fail.
    if (isConnectionLoss(error)) await endOfTurn()
    if (this.lost) await Promise.withResolvers<never>().promise
  }
}

/** `close` events come after those of `setImmediate`, so the second one has seen them. */
async function endOfTurn(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve)
    })
  }
}

/** A shielded handle, and the queries that were sent through it. */
export interface Shielded<Handle> {
  readonly handle: Handle
  readonly queries: LeashedQueries
}

/**
 * A postgres.js transaction handle whose queries are on the leash, and that refuses once its connection is
 * lost.
 *
 * postgres.js itself goes on with a transaction whose connection is gone: the next statement,
 * ROLLBACK or COMMIT is written to no socket, which ends the process, or to a connection that by
 * then serves someone else (porsager/postgres issues 1208 and 1216, seen in 3.4.9). So the handle
 * refuses, and a callback that was under way never returns to postgres.js, which would send
 * ROLLBACK; by then its caller has been given the rejection of `begin`.
 */
export function shield<Handle extends PostgresJsHandle>(
  handle: Handle,
  lifetime: Lifetime,
  leash: Leash,
): Shielded<Handle> {
  const queries = new LeashedQueries(leash, (error) => lifetime.lose(error))
  lifetime.whenLost.catch((error: unknown) => queries.lose(error))
  return { handle: shielded(handle, lifetime, queries), queries }
}

function shielded<Handle extends PostgresJsHandle>(
  handle: Handle,
  lifetime: Lifetime,
  queries: LeashedQueries,
): Handle {
  const held = (call: (...args: unknown[]) => unknown, args: readonly unknown[]): unknown => {
    lifetime.assertRunning()
    return queries.hold(call(...args))
  }
  return new Proxy(handle, {
    apply: (target, self, args) =>
      held((...all) => Reflect.apply(target as never, self, all) as unknown, args),
    get(target, property, receiver) {
      const value: unknown = Reflect.get(target, property, receiver)
      if (typeof value !== 'function') return value
      const call = value as (...args: unknown[]) => unknown
      if (property === 'savepoint') return shieldedSavepoint(call, lifetime, queries)
      if (property === 'file') return (...args: unknown[]) => held(read(target, call), args)
      if (property === 'unsafe') return (...args: unknown[]) => held(call, args)
      if (property === 'notify') {
        return (...args: unknown[]) => {
          lifetime.assertRunning()
          return call(...args)
        }
      }
      // It would end the transaction by PREPARE TRANSACTION.
      if (property === 'prepare') return () => queries.assertMay('PREPARE TRANSACTION')
      return value
    },
  })
}

/** A file's text has to be known before it is sent. One that cannot be read is left to postgres.js. */
function read(
  { unsafe }: PostgresJsHandle,
  file: (...args: unknown[]) => unknown,
): (...args: unknown[]) => unknown {
  return (...args) => {
    let text: string
    try {
      text = readFileSync(args[0] as string, 'utf8')
    } catch {
      return file(...args)
    }
    return (unsafe as (...all: unknown[]) => unknown)(text, ...args.slice(1))
  }
}

type Body = (inner: PostgresJsHandle) => unknown

/**
 * postgres.js ends a savepoint whenever its callback does, by ROLLBACK TO on the connection that it knows, which
 * may serve somebody else by then. So a callback that outlives the body never returns to it either.
 */
function shieldedSavepoint(
  savepoint: (...args: unknown[]) => unknown,
  lifetime: Lifetime,
  queries: LeashedQueries,
): (...args: unknown[]) => Promise<unknown> {
  return async (...args) => {
    lifetime.assertRunning()
    queries.assertMay('SAVEPOINT')
    const late = Promise.withResolvers<never>()
    const held = args.map((arg) =>
      typeof arg === 'function'
        ? inSavepoint(arg as Body, lifetime, queries, late.reject)
        : (arg as unknown),
    )
    return queries.during(() => Promise.race([savepoint(...held), lifetime.whenLost, late.promise]))
  }
}

function inSavepoint(
  body: Body,
  lifetime: Lifetime,
  queries: LeashedQueries,
  isLate: (error: unknown) => void,
): (inner: PostgresJsHandle) => Promise<unknown> {
  const unlessLate = async (error?: unknown): Promise<void> => {
    await lifetime.unlessLost(error)
    if (queries.isHeld) return
    isLate(holdfastError('TX_HANDLE_ENDED'))
    await Promise.withResolvers<never>().promise
  }
  return async (inner) => {
    try {
      const result = body(shielded(inner, lifetime, queries))
      // As postgres.js does with the array of queries a callback may return.
      const settled = await (Array.isArray(result) ? Promise.all(result) : result)
      await unlessLate()
      return settled
    } catch (error) {
      await unlessLate(error)
      throw error
    }
  }
}

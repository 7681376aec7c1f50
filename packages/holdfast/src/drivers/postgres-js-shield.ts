import { holdfastError } from '../core/errors.ts'
import { isConnectionLoss } from '../core/sql-state.ts'
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
    throw holdfastError('DRIVER_HANDLE_INVALID', {
      details: { subject: 'its transaction has ended' },
    })
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

/** Calls on a handle that send something. */
const sending: ReadonlySet<string | symbol> = new Set(['unsafe', 'file', 'notify'])

/**
 * A postgres.js transaction handle that refuses once its connection is lost.
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
): Handle {
  return new Proxy(handle, {
    apply(target, self, args) {
      lifetime.assertRunning()
      return Reflect.apply(target as unknown as (...all: unknown[]) => unknown, self, args)
    },
    get(target, property, receiver) {
      const value: unknown = Reflect.get(target, property, receiver)
      if (typeof value !== 'function') return value
      const call = value as (...args: unknown[]) => unknown
      if (property === 'savepoint') return shieldedSavepoint(call, lifetime)
      if (!sending.has(property)) return value
      return (...args: unknown[]) => {
        lifetime.assertRunning()
        return call(...args)
      }
    },
  })
}

type Body = (inner: PostgresJsHandle) => unknown

function shieldedSavepoint(
  savepoint: (...args: unknown[]) => unknown,
  lifetime: Lifetime,
): (...args: unknown[]) => Promise<unknown> {
  return async (...args) => {
    lifetime.assertRunning()
    const shielded = args.map((arg) =>
      typeof arg === 'function' ? inSavepoint(arg as Body, lifetime) : arg,
    )
    return Promise.race([savepoint(...shielded), lifetime.whenLost])
  }
}

function inSavepoint(
  body: Body,
  lifetime: Lifetime,
): (inner: PostgresJsHandle) => Promise<unknown> {
  return async (inner) => {
    try {
      const result = body(shield(inner, lifetime))
      // As postgres.js does with the array of queries a callback may return.
      const settled = await (Array.isArray(result) ? Promise.all(result) : result)
      await lifetime.unlessLost()
      return settled
    } catch (error) {
      await lifetime.unlessLost(error)
      throw error
    }
  }
}

import { AsyncLocalStorage } from 'node:async_hooks'
import { processWide } from '../../core/process-wide.ts'
import { asObjects } from './mysql2-connection.ts'
import type { Mysql2CorePool } from './mysql2-orm.ts'
import type { Mysql2Core } from './mysql2-orm-leash.ts'

/** A statement of ours on its way through an ORM that hides its connection. */
export interface Passing {
  readonly text: string
  /** Nothing is sent: only the connection is wanted. */
  readonly isLook: boolean
  /** Where it came along. */
  connection?: Mysql2Core
  answer?: unknown
}

/** By the list of values that the ORM hands on to the connection. */
const passing = /* @__PURE__ */ processWide(
  'mysql2-passing/1',
  () => new WeakMap<object, Passing>(),
)

export function pass(values: readonly unknown[], statement: Passing): void {
  passing.set(values, statement)
}

interface Lent {
  readonly pool: object
  connection: Mysql2Core | undefined
}

const lending = /* @__PURE__ */ processWide('mysql2-lending/1', () => new AsyncLocalStorage<Lent>())
const watched = /* @__PURE__ */ processWide('mysql2-watched/1', () => new WeakSet<object>())

/** Each taking of a connection: all handles over it are of the same transaction. */
export interface Taking {
  readonly pool: object
}

const takings = /* @__PURE__ */ processWide('mysql2-takings/1', () => new WeakMap<object, Taking>())

export function takingOf(connection: Mysql2Core): Taking | undefined {
  return takings.get(connection)
}

type Take = Mysql2CorePool['getConnection']

/**
 * For an ORM that hides its connections: its pool lends it one of ours, and a statement of ours that comes along goes on
 * as it was meant, with its values bound.
 */
export function watchLending(pool: Mysql2CorePool): void {
  if (watched.has(pool)) return
  watched.add(pool)
  const { getConnection } = pool
  const take: Take = (callback) => {
    const lent = lending.getStore()
    if (lent?.pool === pool && lent.connection !== undefined) {
      const { connection } = lent
      // What the body takes comes later, and is another one.
      lent.connection = undefined
      process.nextTick(callback, undefined, connection)
      return
    }
    getConnection.call(pool, (error, connection) => {
      if (connection !== undefined) {
        takings.set(connection, { pool })
        letPass(connection)
      }
      callback(error, connection)
    })
  }
  pool.getConnection = take
}

/** Runs something in which the next connection that is taken from the pool is this one. */
export async function lend<T>(
  pool: Mysql2CorePool,
  connection: Mysql2Core,
  use: (isTaken: () => boolean) => Promise<T>,
): Promise<T> {
  const lent: Lent = { pool, connection }
  return await lending.run(lent, () => use(() => lent.connection === undefined))
}

function letPass(connection: Mysql2Core): void {
  if (watched.has(connection)) return
  watched.add(connection)
  const { query, execute } = connection
  connection.query = (...args) => {
    const [, values, callback] = args
    const ours = passing.get(values as object)
    if (ours === undefined) return query.apply(connection, args)
    ours.connection = connection
    const answer = callback as (error: unknown, answer?: unknown) => void
    if (ours.isLook) return process.nextTick(answer, undefined, [])
    const send = (values as readonly unknown[]).length === 0 ? query : execute
    return send.call(
      connection,
      asObjects(ours.text, connection),
      values,
      (error: unknown, given: unknown) => {
        ours.answer = given
        answer(error, given)
      },
    )
  }
}

import { within } from '../../core/within.ts'
import type { Leash } from '../parts/leash.ts'
import { pgTransactionState } from './pg-state.ts'

type Query = (...args: unknown[]) => unknown

/** What `pg` takes instead of a text: a configuration, or something that sends itself (pg-cursor). */
interface QueryConfig {
  readonly text?: unknown
  readonly callback?: unknown
  submit?(connection: unknown): unknown
  handleError?(error: unknown, connection: unknown): void
}

interface Sending {
  query: Query
  readonly connection?: unknown
}

/**
 * A `pg` client for a body: everything of it, but statements pass the leash, and only its owner gives it
 * back.
 */
export function leashedClient<Client extends object>(client: Client, leash: Leash): Client {
  return new Proxy(client, {
    get(target, property) {
      // With the client itself as receiver: its methods and getters must not meet the proxy.
      const value: unknown = Reflect.get(target, property)
      if (typeof value !== 'function' || property === 'constructor') return value
      if (property === 'query') return (...args: unknown[]) => send(target as never, leash, args)
      if (property === 'release' || property === 'end') {
        return (...args: unknown[]) => {
          leash.assertMayRelease()
          return (value as Query).apply(target, args)
        }
      }
      return (value as Query).bind(target)
    },
    set: (target, property, value) => Reflect.set(target, property, value),
  })
}

function send(client: Sending, leash: Leash, args: readonly unknown[]): unknown {
  const [config] = args
  const text = typeof config === 'string' ? config : (config as QueryConfig | null)?.text
  try {
    const failed = pgTransactionState(client) === 'failed' || isFailing(client)
    leash.assertMay(typeof text === 'string' ? text : undefined, failed)
  } catch (error) {
    return refused(client, args, error)
  }
  return remembered(client, client.query(...args))
}

/** What a body was given for statements that may be without an answer, by client. */
const promised = new WeakMap<object, Promise<unknown>[]>()

function remembered(client: object, made: unknown): unknown {
  if (!(made instanceof Promise)) return made
  const earlier = promised.get(client)
  // In most bodies it is the only one under way.
  if (earlier === undefined || !hasOthers(client)) promised.set(client, [made])
  else earlier.push(made)
  return made
}

/** Besides the one that was sent last. */
function hasOthers(client: unknown): boolean {
  return queued(client) + (activeQuery(client) === undefined ? 0 : 1) > 1
}

/** In the way that the caller would hear of a failed statement. */
function refused(client: Sending, args: readonly unknown[], error: unknown): unknown {
  const config = args[0] as QueryConfig | string | null
  const given = typeof config === 'object' ? config : null
  const callback = args.find((arg) => typeof arg === 'function') ?? given?.callback
  if (typeof callback === 'function') {
    process.nextTick(callback as (error: unknown) => void, error)
    return undefined
  }
  if (typeof given?.submit === 'function') {
    process.nextTick(() => given.handleError?.(error, client.connection))
    return given
  }
  return Promise.reject(error as Error)
}

/** What `pg` keeps about statements under way; not part of its documented face. Up to 8.16 without the underscore. */
interface Busy {
  readonly _activeQuery?: object | null
  readonly _queryQueue?: { readonly length: number }
  readonly _sentQueryQueue?: { readonly length: number }
  readonly activeQuery?: object | null
  readonly queryQueue?: { readonly length: number }
}

/** Statements that wait for their turn, or for their answer behind another one. */
function queued(client: unknown): number {
  const own = client as Busy
  // Newer ones warn whoever reads the old names.
  const waiting = '_queryQueue' in own ? own._queryQueue : own.queryQueue
  return (waiting?.length ?? 0) + (own._sentQueryQueue?.length ?? 0)
}

/** Whether statements are under way or queued. One that has failed is over, though its Sync is not. */
export function isBusy(client: unknown): boolean {
  return activeQuery(client) !== undefined || queued(client) > 0
}

/**
 * A statement has failed, and the server has yet to say what that has made of the transaction. Whoever sent it hears of
 * the failure at once.
 */
export function isFailing(client: unknown): boolean {
  return (client as { readonly readyForQuery?: unknown }).readyForQuery === false && !isBusy(client)
}

/** Until it has said so. */
export async function failureAnswered(client: object): Promise<void> {
  if (isFailing(client)) await rested(client as Resting)
}

/** How long what a body has left behind may go on before its connection is ended. */
export const leftoverMs = 1_000

interface Resting {
  once?(event: 'drain' | 'end', listener: () => void): unknown
  off?(event: 'drain' | 'end', listener: () => void): unknown
  end?(): unknown
  readonly connection?: { readonly stream?: { destroy?(): void } }
}

/**
 * Waits until nothing is under way any more. An open cursor stays so for ever, and ROLLBACK would wait behind it: then
 * the connection is ended, by which the server rolls back, and this is false.
 */
export async function cameToRest(client: object): Promise<boolean> {
  if (!isBusy(client)) return true
  const resting = client as Resting
  await rested(resting)
  if (!isBusy(client)) return true
  // Nobody waits for their answers: that there will be none must not end the process.
  for (const each of promised.get(client) ?? []) each.catch(() => undefined)
  // Said first, so that it is no lost connection to whoever listens.
  void resting.end?.()
  resting.connection?.stream?.destroy?.()
  return false
}

/** Until everything that was sent is answered, for a while. */
async function rested(client: Resting): Promise<void> {
  const events = ['drain', 'end'] as const
  const { promise, resolve } = Promise.withResolvers<void>()
  for (const event of events) client.once?.(event, resolve)
  await within(promise, leftoverMs)
  for (const event of events) client.off?.(event, resolve)
}

/** What is being answered. */
export function activeQuery(client: unknown): object | undefined {
  const own = client as Busy
  return ('_queryQueue' in own ? own._activeQuery : own.activeQuery) ?? undefined
}

/** Its text, where it has one. */
export function textOf(query: object | undefined): string | undefined {
  const { text } = (query ?? {}) as { readonly text?: unknown }
  return typeof text === 'string' ? text : undefined
}

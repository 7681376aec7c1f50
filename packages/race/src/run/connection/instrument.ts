import { AsyncResource } from 'node:async_hooks'
import type { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'
import { GateStream } from '../../gate/gate-stream.ts'
import type { ServerAddress } from '../../gate/server-socket.ts'
import { login } from './login.ts'
import { gatedPorts, sharedSite, uncontrolled } from './shared-connections.ts'

/** The parts of a client of node-postgres that are needed, by shape: there may be several copies. */
interface PgClient extends EventEmitter {
  readonly host: string
  readonly port: number
  readonly password?: string | null
  ssl: ServerAddress['ssl']
  readonly connection: { stream: Duplex; ssl: ServerAddress['ssl'] }
}

const ignore = (): void => {}

type Method = (this: unknown, ...values: unknown[]) => unknown

/** The module `pg`, or its default export. */
export interface PgModule {
  readonly Client: { readonly prototype: object }
  readonly Pool: { readonly prototype: object }
}

const instrumented = new WeakSet<object>()

/**
 * Puts every connection that node-postgres opens from now on under control, for code whose client is
 * a global of a module. Which flow a statement belongs to is told by the asynchronous context in
 * which it is sent. Call it before the first connection is opened.
 *
 * @example
 * ```ts
 * import pg from 'pg'
 * instrument(pg)
 * const { reserve } = await import('../src/reserve.ts')   // has its own pool
 * const report = await explore({ url, flows: { alice: () => reserve(1), bob: () => reserve(1) } })
 * ```
 */
export function instrument(pg: PgModule): void {
  if (!isModule(pg))
    throw new TypeError(`instrument() needs the module pg: import pg from 'pg'; instrument(pg)`)
  const client = pg.Client.prototype
  const pool = pg.Pool.prototype
  if (instrumented.has(client)) return
  instrumented.add(client)
  const connectClient = Reflect.get(client, 'connect') as Method
  const connectPool = Reflect.get(pool, 'connect') as Method

  function connectGated(this: PgClient, ...values: unknown[]): unknown {
    const { connection, host, port, ssl, password } = this
    const gated = connection.stream instanceof GateStream || gatedPorts.has(port)
    if (!uncontrolled.has(this) && !gated) {
      connection.stream.destroy()
      connection.stream = new GateStream(
        sharedSite({ host, port, ssl }, (parameters) =>
          login({ host, port, ssl, ...(typeof password === 'string' && { password }) }, parameters),
        ),
      )
      // Encryption is the business of the gate, which stands between the client and the server.
      connection.ssl = false
      this.ssl = false
      // A crash cuts connections under the hands of whoever has them; that must not end the tests.
      this.on('error', ignore)
    }
    return connectClient.apply(this, values)
  }

  /** A pool calls back in the context of whoever gave the connection back, which is another flow. */
  function connectBound(this: EventEmitter, callback?: (...values: unknown[]) => unknown): unknown {
    if (this.listenerCount('error') === 0) this.on('error', ignore)
    if (callback === undefined) return connectPool.call(this)
    return connectPool.call(this, AsyncResource.bind(callback))
  }

  Reflect.set(client, 'connect', connectGated)
  Reflect.set(pool, 'connect', connectBound)
}

function isModule(pg: Partial<PgModule> | undefined): boolean {
  const made = [pg?.Client, pg?.Pool] as unknown[]
  return made.every((one) => typeof one === 'function' && typeof one.prototype === 'object')
}

import type { Identify } from '../../gate/gated-connection.ts'
import { listen } from '../../gate/listen.ts'
import { traceOf } from '../../core/trace-mark.ts'
import { identityOf } from './http-identity.ts'
import { login } from './login.ts'
import { gatedPorts, sharedSite } from './shared-connections.ts'
import { readTarget } from './stage.ts'
import { databaseUrl } from './url.ts'

/** A way to the database for another process that works for several flows. */
export interface SharedPort extends AsyncDisposable {
  /** What the other process connects to: a port of this machine. */
  readonly url: string
  close(): Promise<void>
}

/** By the comment of the statement, else by what the session is called. */
const byMark: Identify = ({ trace }, { facts }) =>
  identityOf(trace ?? traceOf(facts.applicationName))

/**
 * Opens a port for a server in another process, which all flows call. It outlives explorations; between them everything
 * passes. Whose a statement is, it says itself: by a comment of sqlcommenter (`traceparent='…'`), as OpenTelemetry's
 * instrumentation of `pg` adds it, or by a `traceparent` in its session's `application_name`. What is not marked belongs
 * to whoever has the transaction. A request of a flow to this machine has the header `traceparent`.
 *
 * @example
 * ```ts
 * await using port = await openPort(process.env.DATABASE_URL)
 * const server = spawn('node', ['server.js'], { env: { ...process.env, DATABASE_URL: port.url } })
 * ```
 */
export async function openPort(url: string | undefined): Promise<SharedPort> {
  const direct = databaseUrl('openPort()', url)
  const target = readTarget(direct)
  const begin = (parameters: ReadonlyMap<string, string>): ReturnType<typeof login> =>
    login({ connectionString: direct }, parameters)
  const listener = await listen(
    sharedSite(target.server, begin, { identify: byMark, inherits: true }),
  )
  gatedPorts.add(listener.port)
  async function close(): Promise<void> {
    gatedPorts.delete(listener.port)
    listener.close()
  }
  return { url: target.urlAt(listener.port), close, [Symbol.asyncDispose]: close }
}

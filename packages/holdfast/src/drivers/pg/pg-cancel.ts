import { within } from '../../core/within.ts'

/** The class by which `pg` speaks the protocol; not part of its documented face. */
interface Connection {
  on(event: 'connect' | 'sslconnect' | 'end' | 'error', listener: () => void): unknown
  connect(port: number | string, host?: string): void
  requestSsl(): void
  cancel(processId: number, secretKey: number): void
  readonly stream: Stream
}

interface Stream {
  resetAndDestroy?(): void
  destroy(): void
}

/** The part of a `pg` client by which a second connection to the same place can cancel what the first one runs. */
interface CancellableClient {
  readonly processID: number
  readonly secretKey: number
  readonly host: string
  readonly port: number
  readonly ssl?: unknown
  readonly sslNegotiation?: string
  readonly connection: object
}

/** How long a server may take to hear of it. */
const limitMs = 1_000

/**
 * What cancels the statement of a `pg` client: a cancel request, which needs no login and no place among the server's
 * connections. Behind a pooler the key is the pooler's own, and so is what it makes of it. Nothing where the client
 * does not show its key.
 */
export function pgCancel(client: unknown): (() => Promise<void>) | undefined {
  return isCancellable(client) ? () => tellServer(client) : undefined
}

async function tellServer(client: CancellableClient): Promise<void> {
  const { processID, secretKey, host, port, ssl, sslNegotiation } = client
  const made = client.connection.constructor as new (config: object) => Connection
  const connection = new made({ ssl, sslNegotiation })
  const { stream } = connection
  const over = Promise.withResolvers<void>()
  const send = (): void => connection.cancel(processID, secretKey)
  connection.on('connect', () => {
    if (!ssl) send()
    else if (sslNegotiation !== 'direct') connection.requestSsl()
  })
  connection.on('sslconnect', send)
  connection.on('error', over.resolve)
  // The server closes it when it has passed the cancel on.
  connection.on('end', over.resolve)
  if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`)
  else connection.connect(port, host)
  const told = over.promise.then(() => true)
  if ((await within(told, limitMs)) !== true) drop(stream)
}

/** Resets it, where that can be: what was not read by now must not be read when the backend serves somebody else. */
function drop(stream: Stream): void {
  try {
    stream.resetAndDestroy?.()
  } finally {
    stream.destroy()
  }
}

function isCancellable(client: unknown): client is CancellableClient {
  const { processID, secretKey, connection } = (client ?? {}) as Partial<CancellableClient>
  const { cancel, requestSsl } = (connection ?? {}) as Partial<Connection>
  return (
    typeof processID === 'number' &&
    typeof secretKey === 'number' &&
    typeof cancel === 'function' &&
    typeof requestSsl === 'function'
  )
}

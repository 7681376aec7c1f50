import { createStartupReader } from '../wire/frame-reader.ts'
import { readOpening, writeStart } from '../wire/startup.ts'
import { createGatedConnection, type GatedConnection, type GateEvents } from './gated-connection.ts'
import { openServerSocket, type ServerAddress, type ServerSocket } from './server-socket.ts'

/** What a gate needs to know of where it stands. */
export interface GateSite extends GateEvents {
  readonly server: ServerAddress
  /** Settings for the session, in the form of the start-up parameter `options`. */
  readonly startOptions: string
  /** Tells who is sending, where several flows share a client. */
  readonly identify?: () => unknown
  /** A client begins to connect. */
  opened(connection: GatedConnection): void
}

/** The client's end of a gate. */
export interface ClientEnd {
  toClient(bytes: Buffer): void
  /** The session is over, with the reason if it did not end by itself. */
  closed(error: Error | undefined): void
}

export interface Gate {
  readonly connection: GatedConnection
  fromClient(bytes: Buffer): void
  /** The client has hung up. */
  clientGone(): void
  /** Hangs up on the server's side, whatever is under way. */
  destroy(): void
}

/** Opens a connection to the server for a client, and a gate between them. */
export function openGate(site: GateSite, client: ClientEnd): Gate {
  let reader: ReturnType<typeof createStartupReader> | undefined = createStartupReader()
  let failure: Error | undefined

  const connection = createGatedConnection(
    {
      toServer: (bytes) => socket.write(bytes),
      toClient: client.toClient,
      endServer: () => socket.end(),
      endClient: () => client.closed(failure),
    },
    site,
    site.identify,
  )
  const socket: ServerSocket = openServerSocket(site.server, {
    data: connection.fromServer,
    closed(error) {
      failure = error
      connection.serverGone()
    },
  })

  site.opened(connection)

  function fromClient(bytes: Buffer): void {
    if (!reader) return connection.fromClient(bytes)
    for (const frame of reader.push(bytes)) {
      const opening = readOpening(frame)
      if (opening.kind === 'encryption') {
        // Plain text between the client and us; the server is on the other side.
        client.toClient(Buffer.from('N'))
      } else if (opening.kind === 'cancel') {
        socket.write(frame.bytes)
        socket.end()
      } else {
        reader = undefined
        socket.write(writeStart(opening.version, withOptions(opening.parameters)))
      }
    }
  }

  function withOptions(parameters: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
    if (site.startOptions === '') return parameters
    const own = parameters.get('options')
    return new Map([
      ...parameters,
      ['options', own === undefined ? site.startOptions : `${site.startOptions} ${own}`],
    ])
  }

  return {
    connection,
    fromClient,
    clientGone: connection.clientGone,
    destroy: () => socket.destroy(),
  }
}

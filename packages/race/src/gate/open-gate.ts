import type { Duplex } from 'node:stream'
import { createStartupReader } from '../wire/frame-reader.ts'
import { readOpening, writeStart } from '../wire/startup.ts'
import {
  createGatedConnection,
  type GatedConnection,
  type GateEvents,
  type GateSinks,
  type Identify,
} from './gated-connection.ts'
import {
  adoptServerSocket,
  openServerSocket,
  type ServerAddress,
  type ServerListener,
  type ServerSocket,
} from './server-socket.ts'

export type StartParameters = ReadonlyMap<string, string>

/** What a gate needs to know of where it stands. */
export interface GateSite extends GateEvents {
  readonly server: ServerAddress
  /** Settings for the session, in the form of the start-up parameter `options`. */
  readonly startOptions: string
  /** Asked of each new session; `told` of its connection has the answer. */
  readonly question?: string
  /** Tells who is sending, where several flows share a client. */
  readonly identify?: Identify
  /** What nobody has marked belongs to whoever has the transaction. */
  readonly inherits?: boolean
  /** The start-up parameters with which the session is really begun: another database, for example. */
  lead?(connection: GatedConnection, parameters: StartParameters): StartParameters
  /** Opens a session as a client with these start-up parameters would have it. */
  login(parameters: StartParameters): Promise<Login>
  /** A client begins to connect, or has a new session. */
  opened(connection: GatedConnection): void
}

/** A session that is open and idle. */
export interface Login {
  readonly socket: Duplex
  readonly pid: number
}

/** The client's end of a gate. */
export interface ClientEnd extends Pick<GateSinks, 'placeOfClient'> {
  toClient(bytes: Buffer): void
  /** The session is over, with the reason if it did not end by itself. */
  closed(error: Error | undefined): void
}

export interface Gate {
  fromClient(bytes: Buffer): void
  /** The client has hung up. */
  clientGone(): void
  /** Does not keep the process alive any more. */
  unref(): void
}

/** Opens a connection to the server for a client, and a gate between them. */
export function openGate(site: GateSite, client: ClientEnd): Gate {
  let reader: ReturnType<typeof createStartupReader> | undefined = createStartupReader()
  let started: StartParameters = new Map()
  let failure: Error | undefined
  const led = (): StartParameters => site.lead?.(connection, started) ?? started

  const connection = createGatedConnection(
    {
      toServer: (bytes) => socket.write(bytes),
      toClient: client.toClient,
      ...(client.placeOfClient && { placeOfClient: client.placeOfClient }),
      ...(site.inherits !== undefined && { inherits: site.inherits }),
      ...(site.question !== undefined && { question: site.question }),
      endServer: () => socket.end(),
      endClient: () => client.closed(failure),
      async reopen() {
        const login = await site.login(led())
        failure = undefined
        socket = adoptServerSocket(login.socket, listener)
        site.opened(connection)
        return login.pid
      },
    },
    site,
    site.identify,
  )
  const listener: ServerListener = {
    data: connection.fromServer,
    closed(error) {
      failure = error
      connection.serverGone()
    },
  }
  let socket: ServerSocket = openServerSocket(site.server, listener)
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
        started = withOptions(opening.parameters, site.startOptions)
        socket.write(writeStart(opening.version, led()))
      }
    }
  }

  return {
    fromClient,
    clientGone: connection.clientGone,
    unref: () => socket.unref(),
  }
}

function withOptions(parameters: StartParameters, options: string): StartParameters {
  if (options === '') return parameters
  const own = parameters.get('options')
  return new Map([...parameters, ['options', own === undefined ? options : `${options} ${own}`]])
}

import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { resetSocket } from '@holdfast/testkit'

/** On which side of a command the wire is cut: before it has arrived, or when it was answered and nobody has heard it. */
export const cuts = ['unsent', 'unheard'] as const
/** `under way`: it has arrived, and nobody waits for its answer. */
export type Cut = (typeof cuts)[number] | 'under way'

/** A way to a MariaDB or MySQL that counts commands, and is cut at one of them. */
export interface CuttingWire extends AsyncDisposable {
  readonly url: string
  /** The commands since `arm`, in the order in which they came: the text, or the kind. */
  readonly commands: readonly string[]
  /**
   * From now on commands are counted, from 0; all connections end at this one, and new ones may come. `first` is called
   * before they end.
   */
  arm(at: number, cut: Cut, first?: () => void): void
  disarm(): void
}

const kinds: Readonly<Record<number, string>> = {
  1: 'quit',
  3: '',
  22: 'prepare ',
  23: 'execute ',
  25: 'close',
}

/** What is told of the commands of one connection: also of one that was prepared, its text. */
class Commands {
  readonly #prepared = new Map<number, string>()
  #asked: string | undefined
  #last = ''

  /** A command is a packet with number 0: three bytes of length, one of number, one of kind, and the text. */
  of(packet: Buffer): string | undefined {
    const kind = packet[4]
    if (packet[3] !== 0 || kind === undefined || kind === 1 || kind === 25) return undefined
    let text = kind === 3 || kind === 22 ? packet.subarray(5).toString() : ''
    if (kind === 22) this.#asked = this.#last = text
    if (kind === 23) text = this.#prepared.get(packet.readUInt32LE(5)) ?? this.#last
    return (kinds[kind] ?? `command ${kind}`) + text
  }

  /** The server has answered; to PREPARE with a number. */
  answered(data: Buffer): void {
    if (this.#asked === undefined) return
    if (data[4] === 0) this.#prepared.set(data.readUInt32LE(5), this.#asked)
    this.#asked = undefined
  }
}

export async function cuttingWire(serverUrl: string): Promise<CuttingWire> {
  const target = new URL(serverUrl)
  const sockets = new Set<Socket>()
  let armed: { readonly at: number; readonly cut: Cut; first(): void } | undefined
  let commands: string[] = []
  const endAll = (): void => {
    armed?.first()
    armed = undefined
    for (const socket of sockets) resetSocket(socket)
  }

  const server = createServer((client) => {
    const behind = connect(Number(target.port), target.hostname)
    const seen = new Commands()
    let rest = Buffer.alloc(0)
    let isUnheard = false
    for (const socket of [client, behind]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        behind.destroy()
      })
    }
    client.on('data', (data) => {
      rest = Buffer.concat([rest, data])
      while (rest.length >= 4 && rest.length >= 4 + rest.readUIntLE(0, 3)) {
        const end = 4 + rest.readUIntLE(0, 3)
        const packet = rest.subarray(0, end)
        rest = rest.subarray(end)
        const command = seen.of(packet)
        if (command !== undefined && armed !== undefined) {
          commands.push(command)
          if (commands.length - 1 === armed.at) {
            if (armed.cut === 'unsent') return endAll()
            if (armed.cut === 'under way') {
              behind.write(packet, () => endAll())
              return
            }
            isUnheard = true
          }
        }
        behind.write(packet)
      }
    })
    behind.on('data', (data) => {
      seen.answered(data)
      if (isUnheard) endAll()
      else client.write(data)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(serverUrl)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    get commands() {
      return commands
    },
    arm(at, cut, first = () => undefined) {
      commands = []
      armed = { at, cut, first }
    },
    disarm() {
      armed = undefined
    },
    async [Symbol.asyncDispose]() {
      armed = undefined
      endAll()
      server.close()
      await once(server, 'close')
    },
  }
}

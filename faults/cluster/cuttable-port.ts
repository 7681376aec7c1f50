import { connect, createServer, type Server, type Socket } from 'node:net'
import { resetSocket, waitUntil } from '@holdfast/testkit'
import { type Commits, followConversation } from './conversation.ts'

/**
 * When the connection is cut: `before` the server gets the message that commits, `after` it was sent on, or
 * when the `answered` commit is on its way back and never arrives.
 */
export type CutMoment = 'before' | 'after' | 'answered'

export interface Address {
  readonly host: string
  readonly port: number
}

/** A port in front of a server that passes on what is said, until it does not. */
export interface CuttablePort extends AsyncDisposable {
  readonly name: string
  readonly port: number
  /** How many connections there are. */
  readonly connections: number
  /** Where new connections lead from now on. */
  leadTo(target: Address): void
  /** Cuts the next connections that commit; resolves with how many it were, at the latest after `limitMs`. */
  cutCommits(plan: {
    readonly aim: Commits
    readonly moment: CutMoment
    readonly count: number
    readonly limitMs: number
  }): Promise<number>
  /** Cuts all at once. */
  cutAll(): number
  /** Nothing gets through in either direction, and nobody is told. */
  stall(): void
  /** Passes everything on again, and cuts at no commit any more. */
  restore(): void
}

interface Trap {
  readonly aim: Commits
  readonly moment: CutMoment
  left: number
  cut: number
}

interface Line {
  cut(): void
  stall(): void
  restore(): void
}

const answerLimitMs = 2_000

export async function openCuttablePort(name: string, first: Address): Promise<CuttablePort> {
  const lines = new Set<Line>()
  let target = first
  let stalled = false
  let trap: Trap | undefined

  const server = createServer({ noDelay: true }, (client) => {
    const line = openLine(
      client,
      target,
      () => trap,
      () => lines.delete(line),
    )
    lines.add(line)
    if (stalled) line.stall()
  })
  await listening(server)
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error(`${name} has no port`)

  const cutAll = (): number => {
    const all = [...lines]
    for (const line of all) line.cut()
    return all.length
  }
  const restore = (): void => {
    trap = undefined
    stalled = false
    for (const line of lines) line.restore()
  }
  return {
    name,
    port: address.port,
    get connections() {
      return lines.size
    },
    leadTo(next) {
      target = next
    },
    async cutCommits({ aim, moment, count, limitMs }) {
      const mine: Trap = { aim, moment, left: count, cut: 0 }
      trap = mine
      try {
        await waitUntil('the commits are cut', () => (mine.left === 0 ? true : undefined), {
          limitMs,
        })
      } catch {
        // Nobody committed for so long; whoever asked is told how many did.
      } finally {
        if (trap === mine) trap = undefined
      }
      return mine.cut
    },
    cutAll,
    stall() {
      stalled = true
      for (const line of lines) line.stall()
    },
    restore,
    async [Symbol.asyncDispose]() {
      restore()
      cutAll()
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
      })
    },
  }
}

async function listening(server: Server): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
}

function openLine(
  client: Socket,
  target: Address,
  trapNow: () => Trap | undefined,
  closed: () => void,
): Line {
  const server = connect({ ...target, noDelay: true })
  const conversation = followConversation()
  /** The answer to a commit is awaited here and goes no further. */
  let deaf = false

  const cut = (): void => {
    // A reset, so that the client learns it at once, as from a machine that has restarted.
    resetSocket(client)
    server.destroy()
  }
  const spring = (trap: Trap): void => {
    trap.left -= 1
    trap.cut += 1
  }
  const listen = (chunk: Buffer): void => {
    if (deaf) return
    const { parts, answer: refusal } = conversation.fromClient(chunk)
    if (refusal !== undefined) client.write(refusal)
    const trap = trapNow()
    const hit =
      trap === undefined || trap.left === 0
        ? undefined
        : parts.find(({ commits }) => commits === trap.aim)
    if (trap === undefined || hit === undefined) {
      for (const { bytes } of parts) server.write(bytes)
      return
    }
    spring(trap)
    if (trap.moment === 'before') {
      for (const { bytes } of parts.slice(0, parts.indexOf(hit))) server.write(bytes)
      resetSocket(client)
      server.end()
      return
    }
    for (const { bytes } of parts) server.write(bytes)
    if (trap.moment === 'after') {
      resetSocket(client)
      server.end()
    } else {
      deaf = true
      setTimeout(cut, answerLimitMs).unref()
    }
  }
  const answer = (chunk: Buffer): void => {
    const ready = conversation.fromServer(chunk)
    if (!deaf) client.write(chunk)
    else if (ready) cut()
  }
  // What is not PostgreSQL's protocol is the end of that connection, and not of the whole run.
  const orCut = (act: (chunk: Buffer) => void) => (chunk: Buffer) => {
    try {
      act(chunk)
    } catch {
      cut()
    }
  }
  client.on('data', orCut(listen))
  server.on('data', orCut(answer))
  client.on('end', () => server.end())
  server.on('end', () => client.end())
  for (const [one, other] of [
    [client, server],
    [server, client],
  ] as const) {
    // What breaks one side is the end of the other.
    one.on('error', () => one.destroy())
    one.on('close', () => {
      if (!other.destroyed) other.destroySoon()
      closed()
    })
  }
  return {
    cut,
    stall() {
      client.pause()
      server.pause()
    },
    restore() {
      client.resume()
      server.resume()
    },
  }
}

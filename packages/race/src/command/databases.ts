/**
 * Which databases a process of the suite talks to, by what its sockets send. A suite may have an address of its own, or one
 * database for each worker: the rows that the hunt has kept are others then, and what it says of them would not be so.
 */
import { Socket } from 'node:net'

/** A database as a socket shows it; what is not known, such as the port of a Unix socket, may be any. */
export interface Database {
  readonly name: string
  readonly host: string | undefined
  readonly port: number | undefined
}

export interface DatabaseListener {
  /** From now on; what is returned ends it, and gives those to which something was sent. */
  listen(): () => readonly Database[]
}

type Write = (this: Socket, chunk: unknown, ...rest: unknown[]) => boolean

/** Listens to all sockets of this process. `first` is told once, of the first database that is talked to. */
export function listenForDatabases(first: () => void): DatabaseListener {
  const known = new WeakMap<Socket, Database>()
  const spoken = new Set<Map<string, Database>>()
  let isFirst = true
  const write = Reflect.get(Socket.prototype, 'write') as Write
  const listening: Write = function (chunk, ...rest) {
    if (!known.has(this)) {
      const opened = openedBy(chunk, this)
      if (opened) known.set(this, opened)
      if (opened && isFirst) {
        isFirst = false
        first()
      }
    }
    const database = known.get(this)
    if (database) for (const one of spoken) one.set(databaseWords(database), database)
    return write.call(this, chunk, ...rest)
  }
  Reflect.set(Socket.prototype, 'write', listening)
  return {
    listen() {
      const own = new Map<string, Database>()
      spoken.add(own)
      return () => {
        spoken.delete(own)
        return [...own.values()]
      }
    },
  }
}

/** Version 3 of the protocol, whatever its minor. */
const version = 3

/** The database that the first message of a session names: a length, a version, and names with values. */
function openedBy(chunk: unknown, { remoteAddress, remotePort }: Socket): Database | undefined {
  if (!(chunk instanceof Uint8Array) || chunk.length < 10) return undefined
  const message = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  if (message.readUInt32BE(0) !== message.length || message.readUInt16BE(4) !== version)
    return undefined
  const words = message.toString('utf8', 8).split('\0')
  const valueOf = (name: string): string | undefined => {
    const at = words.findIndex((word, index) => index % 2 === 0 && word === name)
    return at === -1 ? undefined : words[at + 1]
  }
  const user = valueOf('user')
  if (user === undefined) return undefined
  return { name: valueOf('database') ?? user, host: remoteAddress, port: remotePort }
}

/** Whether it is surely not the one of the URL. Hosts have many names: only the port and the name are compared. */
export function isAnother({ name, port }: Database, url: string): boolean {
  const { pathname, port: ofHost, username, searchParams } = new URL(url)
  const given = searchParams.get('port') ?? ofHost
  const meant = decodeURIComponent(pathname.slice(1)) || decodeURIComponent(username)
  if (meant !== '' && name !== meant) return true
  return port !== undefined && port !== Number(given || '5432')
}

/** `s1 at 127.0.0.1:5432`. */
export function databaseWords({ name, host, port }: Database): string {
  return port === undefined ? name : `${name} at ${host ?? 'localhost'}:${port}`
}

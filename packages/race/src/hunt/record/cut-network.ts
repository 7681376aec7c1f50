/**
 * While calls are replayed, this process reaches the database and its own servers, and nothing else: no connection, no
 * datagram, no name, no child process. What is here is all that Node lets us see; see docs/race/limits.md.
 */
import child from 'node:child_process'
import dgram from 'node:dgram'
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import { isIP, Server, Socket } from 'node:net'
import { basename } from 'node:path'
import threads from 'node:worker_threads'

export interface Cut {
  /** Its address may be connected to. */
  readonly database: string
  /** Every server of this machine may be, and not only those of this process. */
  readonly ownMachine: boolean
  /** Told what is refused. */
  refuse(what: string): void
  /** Told what can reach others and is not refused. */
  escape(what: string): void
}

type Method = (this: unknown, ...values: unknown[]) => unknown

/** Until it is disposed of. Servers of this process that listen from now on are known. */
export function cutNetwork({ database, ownMachine, refuse, escape }: Cut): Disposable {
  const own = addressOf(database)
  const ports = new Set<number>()
  const undo: (() => void)[] = []

  function replace(holder: object, name: string, make: (method: Method) => Method): void {
    const method = Reflect.get(holder, name) as Method | undefined
    if (typeof method !== 'function') return
    const isOwn = Object.hasOwn(holder, name)
    Reflect.set(holder, name, make(method))
    undo.push(() => {
      if (isOwn) Reflect.set(holder, name, method)
      else Reflect.deleteProperty(holder, name)
    })
  }

  const refusal = (what: string): Error => {
    refuse(what)
    return new Error(
      `hunt has refused ${what}: while it replays calls it reaches the database and servers of this process only. Pass --elsewhere send to allow it`,
    )
  }

  function isAllowed({ host = 'localhost', port, path }: Target): boolean {
    if (path !== undefined) return own.path !== undefined && path.startsWith(own.path)
    if (isLocal(host) && (ownMachine || ports.has(Number(port)))) return true
    return own.port === Number(port) && (own.host === host || (isLocal(own.host) && isLocal(host)))
  }

  replace(
    Server.prototype,
    'listen',
    (listen) =>
      function (this: unknown, ...values) {
        const server = this as Server
        server.once('listening', () => {
          const address = server.address()
          if (typeof address === 'object' && address !== null) ports.add(address.port)
        })
        return listen.apply(this, values)
      },
  )
  replace(
    Socket.prototype,
    'connect',
    (connect) =>
      function (this: unknown, ...values) {
        const target = targetOf(values)
        if (isAllowed(target)) return connect.apply(this, values)
        const { host = 'localhost', port, path } = target
        const error = refusal(`a connection to ${path ?? `${host}:${port}`}`)
        process.nextTick(() => (this as Socket).destroy(error))
        return this
      },
  )
  for (const name of ['send', 'connect']) {
    replace(
      dgram.Socket.prototype,
      name,
      () =>
        function (this: unknown, ...values) {
          const error = refusal('a datagram')
          const done = values.findLast((value) => typeof value === 'function') as Method | undefined
          process.nextTick(() => done?.(error))
          return undefined
        },
    )
  }
  const isKnown = (name: unknown): boolean =>
    typeof name !== 'string' || isIP(name) > 0 || name === own.host || isLocal(name)
  for (const holder of [dns, dns.Resolver.prototype]) {
    for (const name of namesOfDns(holder)) {
      replace(
        holder,
        name,
        (ask) =>
          function (this: unknown, ...values) {
            if (isKnown(values[0])) return ask.apply(this, values)
            const error = refusal(`the name ${String(values[0])}`)
            const done = values.findLast((value) => typeof value === 'function') as Method
            process.nextTick(() => done(error))
            return undefined
          },
      )
    }
  }
  for (const holder of [dns.promises, dns.promises.Resolver.prototype]) {
    for (const name of namesOfDns(holder)) {
      replace(
        holder,
        name,
        (ask) =>
          async function (this: unknown, ...values) {
            if (isKnown(values[0])) return ask.apply(this, values)
            throw refusal(`the name ${String(values[0])}`)
          },
      )
    }
  }
  const refuseProgram = (file: unknown): void => {
    // A compiler of modules, which loaders start.
    if (/^esbuild(?:\.exe)?$/.test(basename(String(file)))) return
    throw refusal(`the program ${basename(String(file))}`)
  }
  replace(
    child.ChildProcess.prototype,
    'spawn',
    (spawn) =>
      function (this: unknown, ...values) {
        refuseProgram((values[0] as { readonly file?: unknown } | undefined)?.file)
        return spawn.apply(this, values)
      },
  )
  for (const name of ['spawnSync', 'execSync', 'execFileSync']) {
    replace(
      child,
      name,
      (spawn) =>
        function (this: unknown, ...values) {
          refuseProgram(name === 'execSync' ? 'sh' : values[0])
          return spawn.apply(this, values)
        },
    )
  }
  const { Worker } = threads
  class SeenWorker extends Worker {
    constructor(...values: ConstructorParameters<typeof Worker>) {
      escape('a worker thread')
      super(...values)
    }
  }
  threads.Worker = SeenWorker
  undo.push(() => {
    threads.Worker = Worker
  })
  syncBuiltinESMExports()
  return {
    [Symbol.dispose]() {
      for (const one of undo.toReversed()) one()
      syncBuiltinESMExports()
    },
  }
}

/** What `connect` of a socket takes, once it is brought into one form. */
interface Target {
  readonly host?: string | undefined
  readonly port?: number | string | undefined
  readonly path?: string | undefined
}

function targetOf([first, second]: readonly unknown[]): Target {
  // `net.connect` has brought its own into a list already.
  if (Array.isArray(first)) return targetOf(first)
  if (typeof first === 'object' && first !== null) return first
  if (typeof first === 'string' && !/^\d+$/.test(first)) return { path: first }
  const port = first as number | string
  return typeof second === 'string' ? { host: second, port } : { port }
}

function addressOf(database: string): Target & { readonly host: string } {
  const { hostname, port, searchParams } = new URL(database)
  const given = searchParams.get('host') ?? decodeURIComponent(hostname)
  const host = given.replaceAll(/^\[|\]$/g, '')
  const path = host.startsWith('/') ? host : undefined
  return { host: host === '' ? 'localhost' : host, port: port === '' ? 5432 : Number(port), path }
}

function isLocal(host: string): boolean {
  return /^(?:localhost|127\.\d+\.\d+\.\d+|::1|)$/.test(host)
}

function namesOfDns(holder: object): string[] {
  return Object.getOwnPropertyNames(holder).filter((name) =>
    /^(?:lookup|resolve|reverse)/.test(name),
  )
}

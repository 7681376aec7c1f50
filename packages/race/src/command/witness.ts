/** What the processes of a command do, in case nothing is recorded: the message then says what there was instead. */
import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { type ClientRequest, Server } from 'node:http'
import { basename, dirname, join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { list, times } from '../report/words.ts'

type Kind = 'process' | 'server' | 'request'

/** Beside the socket, in a folder that nobody else can look into. */
const fileOf = (socket: string): string => join(dirname(socket), 'witness')

/** Of one process no more than so many things. */
const most = 50

/** In a process that is recorded: writes down that it runs, that servers listen, and to whom requests are sent. */
export function witness(socket: string): void {
  const told = new Set<string>()
  const tell = (kind: Kind, what: string): void => {
    const line = JSON.stringify([kind, what])
    if (told.has(line) || told.size === most) return
    told.add(line)
    try {
      appendFileSync(fileOf(socket), `${line}\n`)
    } catch {
      // The command is gone: nobody asks any more.
    }
  }
  if (isMainThread) tell('process', basename(process.argv[1] ?? process.execPath))
  subscribe('undici:request:create', (message) => {
    const { request } = message as { readonly request: { readonly origin: string | URL } }
    tell('request', new URL(request.origin).host)
  })
  subscribe('http.client.request.created', (message) => {
    const { request } = message as { readonly request: ClientRequest }
    tell('request', String(request.getHeader('host') ?? request.host))
  })
  const emit = Reflect.get(Server.prototype, 'emit') as Emit
  Reflect.set(Server.prototype, 'emit', function (this: Server, event: string, ...rest: unknown[]) {
    if (event === 'listening') tell('server', String(process.pid))
    return emit.call(this, event, ...rest)
  })
}

type Emit = (this: Server, event: string, ...rest: unknown[]) => boolean

/** In the command: `2 processes of Node (node:test, vitest.mjs), no server of node:http, requests to localhost:3000`. */
export function witnessed(socket: string): string {
  const file = fileOf(socket)
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []
  const all = lines.map((line) => JSON.parse(line) as readonly [Kind, string])
  const of = (kind: Kind): string[] => all.filter(([is]) => is === kind).map(([, what]) => what)
  const processes = of('process')
  if (processes.length === 0) return 'no process of Node that can be recorded was started'
  const names = [...new Set(processes)].slice(0, 5)
  const hosts = [...new Set(of('request'))].slice(0, 5)
  const servers = of('server').length
  return list([
    `${times(processes.length, 'process', 'processes')} of Node (${names.join(', ')})`,
    servers === 0
      ? 'no server of node:http that listened'
      : `${times(servers, 'process', 'processes')} with a server of node:http that listened`,
    hosts.length === 0 ? 'no request that was sent' : `requests that were sent to ${list(hosts)}`,
  ])
}

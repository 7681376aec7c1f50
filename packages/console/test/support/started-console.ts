import { connect } from 'node:net'
import type { Driver } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { listen, type ServerLimits } from '../../src/node/listen.ts'
import type { AuditEntry } from '../../src/server/actions.ts'
import type { ConsoleOptions } from '../../src/server/console-options.ts'
import { assembleConsole, type ConsoleInside } from '../../src/server/create-console.ts'

/** Tokens as they would be: long and random. */
export const tokens = {
  view: 'view-GqN2tYk7vB0pXr5cLz8e',
  operate: 'operate-h3Wd9mQ1sJ6uTf4aKo7y',
  metrics: 'metrics-Vb5nC2xZ8lP0iRe6gHq4',
} as const

export const auth = {
  tokens: (['view', 'operate', 'metrics'] as const).map((role) => ({
    name: `${role} token`,
    role,
    token: tokens[role],
  })),
}

export interface StartedConsole {
  readonly origin: string
  readonly port: number
  /** A request; relative to the root. */
  get(path: string, init?: RequestInit): Promise<Response>
  close(): Promise<void>
}

/** A console that listens on a port of this machine, until the test is over. */
export async function startConsole(
  options: ConsoleOptions,
  inside: Partial<ConsoleInside> = {},
  limits?: ServerLimits,
): Promise<StartedConsole> {
  const made = assembleConsole(options, inside)
  const server = await listen(made, { port: 0, host: '127.0.0.1' }, limits)
  const origin = `http://127.0.0.1:${server.port}`
  onTestFinished(() => server.close())
  return {
    origin,
    port: server.port,
    get: (path, init) => fetch(`${origin}${path}`, { redirect: 'manual', ...init }),
    close: () => server.close(),
  }
}

export interface Database {
  readonly url: string
  readonly pool: pg.Pool
  readonly driver: Driver<pg.PoolClient>
  end(): Promise<void>
}

/** A fresh database and a pool for the console. */
export async function openDatabase(): Promise<Database> {
  const { directUrl: url } = await testDatabase()
  const pool = new pg.Pool({ connectionString: url, max: 3, application_name: 'console-test' })
  pool.on('error', () => undefined)
  return { url, pool, driver: fromPg(pool), end: () => pool.end() }
}

export const bearer = (token: string): { headers: Record<string, string> } => ({
  headers: { authorization: `Bearer ${token}` },
})

/** A logged-in browser: what it has to send with everything. */
export interface Browser {
  readonly cookie: string
  readonly csrf: string
  readonly setCookie: string
}

export async function login(
  { get, origin }: StartedConsole,
  token: string,
  base = '',
): Promise<Browser> {
  const response = await get(`${base}/api/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin },
    body: JSON.stringify({ token }),
  })
  if (response.status !== 200) throw new Error(`login: ${response.status}`)
  const { csrf } = (await response.json()) as { csrf: string }
  const setCookie = response.headers.get('set-cookie') ?? ''
  return { csrf, setCookie, cookie: setCookie.split(';')[0] ?? '' }
}

export async function codeOf(response: Response): Promise<string> {
  const { error } = (await response.json()) as { error?: { code: string } }
  return error?.code ?? 'none'
}

/** Sends bytes as they are, and gives everything that came back until the server closed. */
export function raw(port: number, text: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const socket = connect(port, '127.0.0.1', () => socket.write(text))
  let answer = ''
  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    answer += chunk
  })
  socket.on('error', (error: NodeJS.ErrnoException) =>
    error.code === 'ECONNRESET' ? resolve(answer) : reject(error),
  )
  socket.on('close', () => resolve(answer))
  return promise
}

/** A console, and what its audit was told. */
export interface AuditedConsole {
  readonly one: StartedConsole
  readonly audit: AuditEntry[]
}

export async function startAudited(
  options: Omit<ConsoleOptions, 'auth' | 'audit'> & Pick<Partial<ConsoleOptions>, 'auth' | 'audit'>,
): Promise<AuditedConsole> {
  const audit: AuditEntry[] = []
  const keep = (entry: AuditEntry): void => void audit.push(entry)
  return { one: await startConsole({ auth, audit: keep, ...options }), audit }
}

/** Asks for an action, as a program does. */
export function act(
  { get }: StartedConsole,
  action: string,
  body: object,
  token: string = tokens.operate,
): Promise<Response> {
  const headers = { ...bearer(token).headers, 'content-type': 'application/json' }
  return get(`/api/actions/${action}`, { method: 'POST', headers, body: JSON.stringify(body) })
}

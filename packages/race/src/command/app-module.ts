/** What the file that `--app` names gives: something that answers requests, functions by name, a word on answers. */
import { Server } from 'node:http'
import { resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { FetchHandler } from '../hunt/record/fetch-handler.ts'
import type { Answering } from '../hunt/record/http-server.ts'
import type { Listener } from '../hunt/record/open-recording.ts'
import type { Classify } from '../run/answer/said.ts'

type NamedFunction = (...values: never[]) => Promise<unknown>

/** Of one application; requests go to one of the first three. */
export interface Application {
  readonly fetch?: FetchHandler
  readonly listener?: Listener
  readonly server?: Answering
  readonly calls: Readonly<Record<string, NamedFunction>>
  readonly outcome?: Classify
}

/** How long a file that exports nothing that answers may take to start a server. */
const startMs = 15_000

/** Loads the file, in a process of its own: servers that it starts listen at a free port, whatever it says. */
export async function loadApplication(file: string): Promise<Application> {
  const first = firstServer()
  const module = await moduleOf(file)
  return applicationOf(module, () => Promise.race([first, setTimeout(startMs, undefined)]))
}

async function moduleOf(file: string): Promise<ModuleOf> {
  try {
    return (await import(pathToFileURL(resolve(file)).href)) as ModuleOf
  } catch (error) {
    if (!(error instanceof Error) || !needsCompiler(error)) throw error
    throw new Error(
      `Node cannot load ${file} as it is: ${error.message}. Test runners compile what they load, and the hunt loads the application with Node alone. Name what your build makes of it, as --app dist/app.js; or let tsx compile it: npm install --save-dev tsx, and NODE_OPTIONS='--import tsx' in the environment of the hunt`,
      { cause: error },
    )
  }
}

const compiled =
  /^(?:ERR_)?(?:MODULE_NOT_FOUND|UNSUPPORTED_DIR_IMPORT|UNKNOWN_FILE_EXTENSION|(?:UNSUPPORTED|INVALID)_TYPESCRIPT_SYNTAX)$/

/** Imports without their ending and aliases, enums and decorators, JSX: what a compiler takes and Node does not. */
function needsCompiler(error: Error & { readonly code?: unknown }): boolean {
  if (compiled.test(String(error.code))) return true
  // Node itself throws it of a file that it cannot read; what JSON.parse throws comes from the code that called it.
  if (!(error instanceof SyntaxError)) return false
  const frame = firstFrame(error)
  return frame === '' || frame.includes('node:internal')
}

function firstFrame({ stack = '' }: Error): string {
  return stack.split('\n').find((line) => /^\s+at /.test(line)) ?? ''
}

type ModuleOf = Readonly<Record<string, unknown>>

/** Also of modules that a test has loaded. `started` is the server that it has started, if it exports none. */
async function applicationOf(
  module: ModuleOf,
  started: () => Promise<Server | undefined>,
): Promise<Application> {
  // What CommonJS exports is the default, and may have names in it.
  const all = { ...(isObject(module['default']) ? module['default'] : {}), ...module }
  const { calls, outcome } = all as { readonly calls?: unknown; readonly outcome?: unknown }
  const exported = await answeringOf(all['app'] ?? all['server'] ?? module['default'])
  const server = exported || isObject(calls) ? undefined : await started()
  const answering = exported ?? (server && { server })
  if (answering === undefined && !isObject(calls)) {
    throw new Error(
      'the file that --app names has nothing that answers: export your application as `app` (a listener of node:http as Express has it, an object with fetch, a server, or a function that makes one), or start a server in it',
    )
  }
  return {
    ...answering,
    calls: isObject(calls) ? (calls as Application['calls']) : {},
    ...(typeof outcome === 'function' && { outcome: outcome as Classify }),
  }
}

type Method = (...values: unknown[]) => unknown

/** What applications of frameworks have, by shape. */
interface App {
  readonly fetch?: Method
  /** Of Fastify. */
  readonly ready?: Method
  readonly server?: unknown
  /** Of NestJS. */
  readonly init?: Method
  readonly getHttpServer?: Method
  /** Of Koa. */
  readonly callback?: Method
}

async function answeringOf(
  value: unknown,
): Promise<Pick<Application, 'fetch' | 'listener' | 'server'> | undefined> {
  const given = await value
  if (given instanceof Server) return { server: given }
  if ((typeof given !== 'object' && typeof given !== 'function') || given === null) return undefined
  const app = given as App
  if (app.server instanceof Server) {
    await app.ready?.()
    return { server: app.server }
  }
  if (app.getHttpServer) {
    await app.init?.()
    return answeringOf(app.getHttpServer())
  }
  if (app.fetch) return { fetch: app.fetch.bind(app) as FetchHandler }
  if (app.callback) return { listener: app.callback() as Listener }
  if (typeof given !== 'function') return undefined
  return given.length === 0 ? answeringOf((given as Method)()) : { listener: given as Listener }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** The first server that listens from now on. */
function firstServer(): Promise<Server> {
  const { promise, resolve: found } = Promise.withResolvers<Server>()
  const listen = Reflect.get(Server.prototype, 'listen') as (...values: unknown[]) => unknown
  Reflect.set(Server.prototype, 'listen', function (this: Server, ...values: unknown[]) {
    found(this)
    const done = values.findLast((value) => typeof value === 'function')
    return listen.apply(this, [0, '127.0.0.1', ...(done === undefined ? [] : [done])])
  })
  return promise
}

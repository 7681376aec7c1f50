/**
 * Which line of the code under test has led to what is being sent. A client or an ORM sends later than it is asked to,
 * so every asynchronous step remembers the stack that it was begun from.
 */
import { type AsyncHook, createHook, executionAsyncId } from 'node:async_hooks'
import { Socket } from 'node:net'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Place } from '../core/model.ts'
import { ownFolder } from '../core/own-folder.ts'

/** V8 writes the text of a stack only if it is read. */
interface Origin {
  readonly stack?: string
  readonly before: Origin | undefined
}

const origins = new Map<number, Origin>()
/** By the port of a client of this process: where what it has sent and got no answer to comes from. */
const unanswered = new Map<number, Place | undefined>()
let tracing = 0

/** Frames of clients and ORMs are between a statement and its line. */
const frames = 40
/** What is told by other sockets or lives longer than one call leads back to somebody else's call. */
const lasting = /^(?:TCP|PIPE|TLS|HTTP|TTY|UDP|PROCESS)/

function originHere(above: (...values: never[]) => unknown): Origin {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = frames
  const origin: Origin = { before: origins.get(executionAsyncId()) }
  Error.captureStackTrace(origin, above)
  Error.stackTraceLimit = stackTraceLimit
  return origin
}

const hook: AsyncHook = createHook({ init: began, destroy: (id) => void origins.delete(id) })

function began(id: number, type: string): void {
  if (!lasting.test(type)) origins.set(id, originHere(began))
}

/** Where what is being sent at this moment was asked for; known while calls are traced. */
export function currentPlace(): Place | undefined {
  if (tracing === 0) return undefined
  for (
    let origin: Origin | undefined = originHere(currentPlace);
    origin !== undefined;
    origin = origin.before
  ) {
    for (const frame of (origin.stack ?? '').split('\n')) {
      const place = placeOf(frame)
      if (place !== undefined) return place
      // A pool that serves the next in its queue, from within the call of whoever gave a connection back.
      if (frame.includes('._release ')) return undefined
      // Called in the context of somebody else, who is the one that asked.
      if (frame.includes('.runInAsyncScope ')) break
    }
  }
  return undefined
}

/** The same of what a client of this process has sent from its port. */
export function placeBehind(port: number | undefined): Place | undefined {
  return port === undefined ? undefined : unanswered.get(port)
}

/** Our own folder, where it is not one of node_modules. */
let own: string | undefined

/** Undefined of a frame that is Node's, ours, or of a package. */
function placeOf(frame: string): Place | undefined {
  const [, where = '', line = ''] = /(?:\(|at (?:async )?)([^()]+):(\d+):\d+\)?$/.exec(frame) ?? []
  const file = fileOf(where)
  if (!/^(?:\/|[A-Za-z]:[\\/])/.test(file)) return undefined
  if (/[\\/]node_modules[\\/]/.test(file) || file.startsWith((own ??= ownFolder())))
    return undefined
  return { file, line: Number(line) }
}

/** Source maps of webpack name files from where it was started: `webpack://shop/./src/app.ts`. */
function fileOf(where: string): string {
  if (where.startsWith('file:')) return fileURLToPath(where)
  const [, path] = /^webpack:\/\/[^/]*\/(.+)$/.exec(where) ?? []
  return path === undefined ? where : resolve(path)
}

type Method = (this: Socket, ...values: unknown[]) => unknown

/** Traces calls until what is returned is called. */
export function traceCalls(): () => void {
  tracing += 1
  if (tracing > 1) return release
  hook.enable()
  const { _write, _writev, push } = Socket.prototype
  const sending = (method: unknown): Method =>
    function (...values) {
      if (this.localPort !== undefined) sent(this.localPort)
      return (method as Method).apply(this, values)
    }
  const pushed: Method = function (...values) {
    if (this.localPort !== undefined) unanswered.delete(this.localPort)
    return (push as Method).apply(this, values)
  }
  // What `write` leads to: Node gives a socket a `write` of its own when it connects.
  Object.assign(Socket.prototype, {
    _write: sending(_write),
    _writev: sending(_writev),
    push: pushed,
  })
  restore = () => Object.assign(Socket.prototype, { _write, _writev, push })
  return release
}

let restore = (): unknown => undefined

function release(): void {
  tracing -= 1
  if (tracing > 0) return
  hook.disable()
  restore()
  origins.clear()
  unanswered.clear()
}

/** Statements that are sent together from two lines come from neither for certain. */
function sent(port: number): void {
  const place = currentPlace()
  const before = unanswered.get(port)
  const same = before?.file === place?.file && before?.line === place?.line
  unanswered.set(port, unanswered.has(port) && !same ? undefined : place)
}

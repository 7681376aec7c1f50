import { AsyncLocalStorage } from 'node:async_hooks'
import type { EventEmitter } from 'node:events'
import { stateOf } from './response-state.ts'

/** A handler that runs, or has run, for a response. */
interface Handling {
  readonly response: object
  refusal: Error | undefined
  /** Nobody of it would catch a refusal: it is over, or a stream is at work. */
  isDeaf: boolean
}

/** Known along the calls of the handler: whoever else answers, as a timeout around the route, is let through. */
const handling = new AsyncLocalStorage<Handling>()

/** Node's own response, and Fastify's reply around it. */
interface Sending extends EventEmitter {
  readonly raw?: Sending
  destroy(): unknown
}

/** What is piped into it. */
interface Source {
  unpipe(target: unknown): unknown
}

/** A response that the handler cannot send. */
export interface HeldBack {
  /**
   * Runs the handler, on a response as it was before the first run: what an attempt has set that was undone must not be
   * the answer of the next one. @throws `refuse()` if it tried to send, though it may have caught that
   */
  run<T>(handler: () => Promise<T>): Promise<T>
  /** Takes back what the handler has set: what is answered is not the answer of its last run. */
  putBack(): void
  /** From now on everybody can. */
  release(): void
}

/**
 * Keeps a handler from sending its answer itself, which would be out before COMMIT, and not what is stored. It is
 * refused where it tries. A stream has nobody to catch that, and neither has what it left behind: there the connection
 * is cut.
 */
export function holdBack(response: object, refuse: () => Error): HeldBack {
  const reply = response as Sending
  const raw = reply.raw ?? reply
  const mine = (): Handling | undefined => {
    const found = handling.getStore()
    return found?.response === raw ? found : undefined
  }
  const hold = (target: object, name: string): (() => void) =>
    replaced(target, name, (send) => {
      const handler = mine()
      if (handler === undefined) return send()
      handler.refusal ??= refuse()
      if (!handler.isDeaf) throw handler.refusal
      raw.destroy()
      return target
    })
  const cut = (source: Source): void => {
    const handler = mine()
    if (handler === undefined) return
    handler.refusal ??= refuse()
    handler.isDeaf = true
    source.unpipe(raw)
    raw.destroy()
  }
  const held = ['writeHead', 'write', 'end'].map((name) => hold(raw, name))
  // Hooks of Fastify would come between it and Node's response.
  if (raw !== reply) held.push(hold(reply, 'send'))
  raw.on('pipe', cut)
  const putBack = stateOf(response)
  let hasRun = false
  return {
    putBack,
    async run(handler) {
      if (hasRun) putBack()
      hasRun = true
      const running: Handling = { response: raw, refusal: undefined, isDeaf: false }
      try {
        const result = await handling.run(running, handler)
        if (running.refusal === undefined) return result
      } catch (error) {
        // What a stream throws because it was cut is not the reason.
        throw running.refusal ?? error
      } finally {
        running.isDeaf = true
      }
      throw running.refusal
    },
    release() {
      raw.off('pipe', cut)
      for (const free of held) free()
    },
  }
}

type Method = (...args: unknown[]) => unknown

/** Puts something in place of a method of an object, until the function that is returned is called. */
function replaced(target: object, name: string, instead: (call: () => unknown) => unknown) {
  const methods = target as Record<string, Method | undefined>
  const own = Object.getOwnPropertyDescriptor(target, name)
  const method = methods[name] as Method
  const placed: Method = function (this: unknown, ...args) {
    return instead(() => method.apply(this, args))
  }
  methods[name] = placed
  return (): void => {
    // Somebody has put another one around it.
    if (methods[name] !== placed) return
    if (own === undefined) delete methods[name]
    else Object.defineProperty(target, name, own)
  }
}

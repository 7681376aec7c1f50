import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HoldfastConsole } from '../server/create-console.ts'
import { serve } from './to-node.ts'

/** As much of Fastify as is needed. */
interface FastifyLike {
  readonly prefix: string
  removeAllContentTypeParsers(): unknown
  addContentTypeParser(
    type: string,
    options: object,
    parse: (request: never, payload: never, done: (error: null) => void) => void,
  ): unknown
  all(
    path: string,
    handle: (
      request: { readonly raw: IncomingMessage },
      reply: { readonly raw: ServerResponse; hijack(): unknown },
    ) => Promise<void>,
  ): unknown
}

/**
 * The console as a plugin of Fastify; its prefix is the base path.
 *
 * @example await app.register(toFastify(holdfastConsole), { prefix: '/holdfast' })
 */
export function toFastify(
  holdfastConsole: Pick<HoldfastConsole, 'fetch'>,
): (app: FastifyLike) => Promise<void> {
  return async (app) => {
    // In this plugin alone: bodies are read by the console, which bounds them.
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', {}, (_request, _payload, done) => done(null))
    const handle = async (
      { raw }: { readonly raw: IncomingMessage },
      reply: { readonly raw: ServerResponse; hijack(): unknown },
    ): Promise<void> => {
      reply.hijack()
      await serve(holdfastConsole, raw, reply.raw, { base: app.prefix })
    }
    app.all('/', handle)
    app.all('/*', handle)
  }
}

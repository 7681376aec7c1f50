/** Applications that are a function from Request to Response, as those of Hono and of edge runtimes are. */
import { answerOf, endpointOf, type HttpAnswer, keptHeaders, requestInit } from './http-input.ts'
import type { HttpInput, Send } from '../model.ts'
import type { Ended, Recorder } from './record-calls.ts'

export type FetchHandler = (request: Request) => Response | Promise<Response>

/** Where such an application believes to be. */
const origin = 'http://localhost'

/** Sends the same request to the handler, without a socket. */
export function sendToHandler(handler: FetchHandler): Send {
  return async (input) => {
    if (input.kind !== 'http') throw new Error('a request is needed')
    const response = await handler(new Request(origin + input.path, requestInit(input)))
    return answerOf(response.status, await response.text())
  }
}

/** A `fetch` for the suite whose requests go to the handler, and are recorded. */
export function recordingFetch(
  handler: FetchHandler,
  recorder: Recorder,
  ended: (answer: HttpAnswer) => Ended,
): typeof fetch {
  return async (to, init) => {
    const request =
      to instanceof Request ? new Request(to, init) : new Request(new URL(to, origin), init)
    const body = await request.clone().text()
    const { pathname, search } = new URL(request.url)
    const input: HttpInput = {
      kind: 'http',
      method: request.method,
      path: pathname + search,
      headers: keptHeaders(request.headers),
      body: body === '' ? undefined : body,
    }
    const work = async (): Promise<readonly [Response, HttpAnswer]> => {
      const response = await handler(request)
      const text = await response.clone().text()
      return [response, answerOf(response.status, text)]
    }
    const known = { name: endpointOf(input), input, send: sendToHandler(handler) }
    const [response] = await recorder.around(() => known, work, {
      answered: ([, answer]) => ended(answer),
      threw: (error) => ({ answer: error, said: 'failed' }),
    })
    return response
  }
}

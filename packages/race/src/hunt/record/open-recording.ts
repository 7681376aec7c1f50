/** Runs the suite once and writes down its calls: requests to this process, and what is named by `call`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FlowEnd } from '../../run/answer/said.ts'
import type { Said } from '../../core/model.ts'
import { type NamedCall, namedCalls } from './call.ts'
import { type Outside, watchElsewhere } from './elsewhere.ts'
import { differing, type Environment } from '../environment.ts'
import { keptHere } from './heard.ts'
import { type FetchHandler, recordingFetch } from './fetch-handler.ts'
import { createServers } from './http-server.ts'
import type { Call, Input } from '../model.ts'
import { createRecorder, type Ended, type Made, type Recorder } from './record-calls.ts'
import type { States } from '../states.ts'
import { createTurns, turnNotes } from './turns.ts'

/** What `http.createServer` takes. */
export type Listener = (request: IncomingMessage, response: ServerResponse) => unknown

/** What answers requests: a listener of `node:http`, as an Express application is one, or `{ fetch }`. */
export type App = Listener | { readonly fetch: FetchHandler }

/** What the suite is given. */
export interface SuiteContext {
  /** Sends a request to `app`: `fetch('/orders', { method: 'POST' })`. */
  readonly fetch: typeof fetch
  /** Where `app` listens, for clients of your own; empty of an `app` with `fetch`, and without one. */
  readonly origin: string
  /**
   * One step of the suite that is no request: a job, or a function. It is called with these values now, and again later, with
   * these and with others of their kind.
   */
  call<V extends readonly unknown[], T>(
    name: string,
    run: (...values: V) => Promise<T>,
    ...values: V
  ): Promise<T>
}

/** What runs the suite once, as it is. */
export type Suite = (context: SuiteContext) => Promise<unknown>

export interface Recorded extends AsyncDisposable {
  readonly calls: readonly Call[]
  readonly notes: readonly string[]
  /** Undefined if everything is sent. */
  readonly outside: Outside | undefined
}

/** The servers stay until it is disposed of: calls are sent again to them. */
export async function openRecording(
  {
    suite,
    app,
    elsewhere,
    url,
  }: {
    readonly suite: Suite
    readonly app: App | undefined
    readonly elsewhere: 'recorded' | 'send'
    readonly url: string
  },
  states: Pick<States, 'take'>,
  say: (end: FlowEnd) => Said,
  mostCalls: number,
): Promise<Recorded> {
  const turns = createTurns<Made & { readonly environment: Environment }>(states.take, mostCalls)
  const recorder = createRecorder(async () => {
    const turn = await turns.begin()
    const environment = { ...process.env }
    return turn && { end: (made) => turn.end(made && { ...made, environment }) }
  })
  const servers = createServers()
  const { isWithin } = recorder
  const watch =
    elsewhere === 'recorded'
      ? watchElsewhere({ isWithin, ownMachine: true, heard: keptHere() })
      : undefined
  const close = async (): Promise<void> => {
    watch?.[Symbol.dispose]()
    await servers[Symbol.asyncDispose]()
  }
  const answered = (answer: unknown): Ended => ({ answer, said: say({ answer }) })
  const call = callOf(recorder, say)
  const named = (message: unknown): void => {
    const one = message as NamedCall
    one.result = call(one.name, one.run, ...one.values)
  }
  try {
    namedCalls.subscribe(named)
    const stop = servers.record(recorder, answered)
    try {
      const origin = typeof app === 'function' ? await servers.serve(listenerOf(app)) : ''
      await suite({
        origin,
        fetch:
          typeof app === 'object'
            ? recordingFetch(app.fetch.bind(app), recorder, answered)
            : (to, init) => fetch(typeof to === 'string' ? new URL(to, origin) : to, init),
        call,
      })
    } finally {
      namedCalls.unsubscribe(named)
      stop()
      watch?.close(url)
    }
  } catch (error) {
    await close()
    throw error
  }
  return {
    calls: turns.calls.map(({ environment, ...call }) => ({
      ...call,
      differing: differing(environment, process.env),
    })),
    notes: turnNotes(turns),
    outside: watch,
    [Symbol.asyncDispose]: close,
  }
}

/** The same, whose promise is waited for by nobody. */
export function listenerOf(app: Listener): (...both: Parameters<Listener>) => void {
  return (request, response) => {
    const done: unknown = app(request, response)
    if (done instanceof Promise) done.catch((error: unknown) => response.destroy(error as Error))
  }
}

function callOf(recorder: Recorder, say: (end: FlowEnd) => Said): SuiteContext['call'] {
  return <V extends readonly unknown[], T>(
    name: string,
    run: (...values: V) => Promise<T>,
    ...values: V
  ): Promise<T> => {
    const input: Input = { kind: 'arguments', values: structuredClone(values) }
    const send = (next: Input): Promise<unknown> => {
      if (next.kind !== 'arguments') throw new Error('arguments are needed')
      return run(...(structuredClone(next.values) as unknown as V))
    }
    return recorder.around<T>(
      () => ({ name, input, send }),
      () => run(...values),
      {
        answered: (answer) => ({ answer, said: say({ answer }) }),
        threw: (error) => ({ answer: error, said: say({ error }) }),
      },
    )
  }
}

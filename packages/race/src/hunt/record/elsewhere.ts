/**
 * Requests that the application sends to other machines: made once, in the recording, and answered from it afterwards. A
 * hunt calls everything many times, and nobody's card is to be charged for that.
 */
import { flowIdentity } from '../../run/connection/flow-identity.ts'
import { cutNetwork } from './cut-network.ts'
import {
  answerHeaders,
  type Asking,
  findHeard,
  hasBody,
  type Heard,
  type HeardList,
  notSent,
} from './heard.ts'
import { answerHttp, recordHttp } from './http-elsewhere.ts'

const here = /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)(:\d+)?$/

/** What calls have wanted of other machines since they were asked last. */
export interface Asked {
  /** Answered from the recording. */
  readonly answered: readonly Heard[]
  /** What calls wanted and did not get: `a connection to mail.example.com:25`. */
  readonly refused: readonly string[]
  /** What nobody can keep in: `a worker thread`. */
  readonly escaped: readonly string[]
}

export interface Outside {
  take(): Asked
  /** What was refused to code that is no call: to an exporter of metrics, or to the start of the application. */
  readonly background: readonly string[]
}

export interface Elsewhere extends Outside, Disposable {
  /** From now on nothing is sent to other machines. `database` is the one address that may be connected to. */
  close(database: string): void
}

export interface Watching {
  /** Whether what runs is part of a recorded call. */
  isWithin(): boolean
  /** Servers of this machine belong to the application, and are asked every time. */
  readonly ownMachine: boolean
  readonly heard: HeardList
}

export function watchElsewhere({ isWithin, ownMachine, heard }: Watching): Elsewhere {
  const real = globalThis.fetch
  let closed = false
  let answered = new Set<Heard>()
  let refused = new Set<string>()
  let escaped = new Set<string>()
  const background = new Set<string>()
  const isOurs = (host: string): boolean => ownMachine && here.test(host)
  const closing: Disposable[] = []

  function answerOf(asking: Asking): Heard | undefined {
    const found = findHeard(heard.all, asking)
    if (found) answered.add(found)
    else refuse(`a request to ${new URL(asking.url).host}`)
    return found
  }

  function refuse(what: string): void {
    const isOfCall = flowIdentity.getStore() !== undefined
    ;(isOfCall ? refused : background).add(what)
  }

  async function fetchOnce(...[to, init]: Parameters<typeof fetch>): Promise<Response> {
    const request = new Request(to, init)
    const { method, url } = request
    if (isOurs(new URL(url).host) || !(closed || isWithin())) return real(request)
    const asking = { method, url, body: await request.clone().text() }
    if (closed) return responseOf(answerOf(asking), asking)
    const response = await real(request)
    const { status } = response
    const text = await response.clone().text()
    heard.push({ ...asking, status, headers: [...response.headers], text })
    return response
  }

  globalThis.fetch = fetchOnce
  const recording = recordHttp({ isWanted: (host) => isWithin() && !isOurs(host), heard })
  return {
    get background() {
      return [...background]
    },
    take() {
      const asked = { answered: [...answered], refused: [...refused], escaped: [...escaped] }
      answered = new Set()
      refused = new Set()
      escaped = new Set()
      return asked
    },
    close(database) {
      closed = true
      recording[Symbol.dispose]()
      closing.push(
        answerHttp({ isOurs, answerOf }),
        cutNetwork({
          database,
          ownMachine,
          refuse,
          escape: (what) => {
            if (flowIdentity.getStore() !== undefined) escaped.add(what)
          },
        }),
      )
    },
    [Symbol.dispose]() {
      globalThis.fetch = real
      recording[Symbol.dispose]()
      for (const one of closing.toReversed()) one[Symbol.dispose]()
    },
  }
}

function responseOf(found: Heard | undefined, asking: Asking): Response {
  if (!found) throw notSent(asking)
  return new Response(hasBody(found) ? found.text : null, {
    status: found.status,
    headers: answerHeaders(found),
  })
}

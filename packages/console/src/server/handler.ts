import { readFileSync } from 'node:fs'
import type { Authenticator, Caller } from '../auth/authenticator.ts'
import type { Sessions } from '../auth/sessions.ts'
import { mayAs } from '../core/identity.ts'
import { Refusal } from '../core/refusals.ts'
import type { Action, Info, Role } from '../core/wire.ts'
import { answer, jsonAnswer, refusalAnswer } from '../http/answer.ts'
import { routeOf } from '../http/base-path.ts'
import { cookieSpot, type CookieSpot, readCookies, writeCookie } from '../http/cookie.ts'
import { bodyOf, checkedUrl, textOf } from '../http/limits.ts'
import { contextOf } from '../http/request-context.ts'
import { assertNotFromElsewhere, assertSameOrigin } from '../http/same-origin.ts'
import type { Redactor } from '../watch/redactor.ts'
import type { WatchedDatabase } from '../watch/watched-database.ts'
import { actionOf, type Audit, carryOut, tellRefused } from './actions.ts'
import { dataRoutes, sessionRoute } from './data-routes.ts'
import { eventStream, type StreamTimes } from './event-stream.ts'
import { explain } from './explain.ts'
import { pageAnswer } from './pages.ts'

export interface HandlerParts {
  readonly authenticator: Authenticator
  readonly sessions: Sessions
  readonly redactor: Redactor
  readonly databases: readonly WatchedDatabase[]
  readonly base: string | undefined
  readonly hosts: readonly string[] | undefined
  readonly origins: readonly string[]
  readonly actions: readonly Action[]
  readonly audit: Audit
  readonly clientAddress: ((request: Request) => string | undefined) | undefined
  readonly info: Pick<Info, 'pollMs' | 'history'>
  readonly streamTimes: StreamTimes
}

/** One request, as far as it is understood. */
interface Visit {
  readonly request: Request
  readonly query: URLSearchParams
  readonly host: string
  readonly spot: CookieSpot
  readonly address: string | undefined
}

const mostListeners = 50

/** From a request to an answer. */
export class Handler {
  readonly #parts: HandlerParts
  #listeners = 0

  constructor(parts: HandlerParts) {
    this.#parts = parts
  }

  /** Never rejects. */
  async answer(request: Request): Promise<Response> {
    try {
      const response = await this.#route(request)
      return request.method === 'HEAD' ? new Response(null, response) : response
    } catch (error) {
      return refusalAnswer(explain(error))
    }
  }

  async #route(request: Request): Promise<Response> {
    const { authenticator, hosts, base, clientAddress } = this.#parts
    const url = checkedUrl(request.url)
    const host = request.headers.get('host') ?? url.host
    assertHost(host, hosts)
    const context = contextOf(request)
    const shownBase = base ?? context.base
    const path = routeOf(url.pathname, context.base ?? base ?? '')
    const isApi = path.startsWith('api/') || path === 'metrics'
    if (authenticator.closed) return closed(isApi)
    const visit = {
      request,
      query: url.searchParams,
      host,
      spot: cookieSpot(url, host, shownBase ?? ''),
      address: clientAddress === undefined ? context.address : clientAddress(request),
    }
    if (!isApi) {
      const page = pageAnswer(path, shownBase)
      if (page === undefined) throw new Refusal('NOT_FOUND')
      assertMethod(request, 'GET')
      return page
    }
    if (path === 'api/login') return await this.#login(visit)
    const caller = await authenticator.callerOf(
      request,
      readCookies(request.headers.get('cookie'), visit.spot.name),
      visit.address,
    )
    return this.#refreshed(await this.#known(path, visit, caller), visit, caller)
  }

  async #known(path: string, visit: Visit, caller: Caller): Promise<Response> {
    const { request } = visit
    if (path === 'metrics') {
      assertMethod(request, 'GET')
      assertRole(caller, 'metrics')
      return await metricsAnswer(this.#database(visit.query))
    }
    assertRole(caller, 'view')
    const rest = path.slice('api/'.length)
    if (rest === 'logout') return this.#logout(visit, caller)
    if (rest.startsWith('actions/')) return await this.#act(rest, visit, caller)
    assertMethod(request, 'GET')
    assertNotFromElsewhere(request.headers)
    if (rest === 'info') return jsonAnswer(JSON.stringify(this.#info(caller)))
    const database = this.#database(visit.query)
    const { feed, history, reads } = database
    if (rest === 'locks') {
      return jsonAnswer(await reads.read('locks', async () => (await feed.current()).json, 0))
    }
    if (rest === 'events') return this.#events(visit, caller, database)
    if (rest === 'history') {
      const points = history.points(textOf(visit.query, 'lock'))
      return jsonAnswer(JSON.stringify({ points }))
    }
    if (rest === 'history/tree') {
      const tree = history.treeAt(textOf(visit.query, 'at') ?? '')
      if (tree === undefined) throw new Refusal('NOT_FOUND')
      return jsonAnswer(tree)
    }
    const route = dataRoutes.get(rest) ?? sessionRoute(rest)
    if (route === undefined) throw new Refusal('NOT_FOUND')
    const { report, about, ask, keepMs } = route(database, visit.query)
    const { redactor } = this.#parts
    const json = await reads.read(
      JSON.stringify([report, ...about]),
      async () => JSON.stringify(redactor.masked(report, await ask())),
      keepMs,
    )
    return jsonAnswer(json)
  }

  async #login({ request, host, spot, address }: Visit): Promise<Response> {
    const { authenticator, sessions, origins } = this.#parts
    assertMethod(request, 'POST')
    assertSameOrigin(request.headers, { host, origins }, { needsOrigin: false })
    const { token } = await bodyOf(request)
    if (typeof token !== 'string' || token === '' || token.length > 512) {
      throw new Refusal('BAD_REQUEST')
    }
    const caller = authenticator.login(token, address)
    const { name, role } = caller.identity
    const body = JSON.stringify({ identity: { name, role }, csrf: authenticator.csrfOf(caller) })
    const cookie = writeCookie(spot, sessions.write(caller.session))
    return jsonAnswer(body, { headers: { 'set-cookie': cookie } })
  }

  #logout({ request, host, spot }: Visit, caller: Caller): Response {
    assertMethod(request, 'POST')
    this.#assertMeant(request, host, caller)
    if (caller.session !== undefined) this.#parts.sessions.end(caller.session)
    return jsonAnswer('{}', { headers: { 'set-cookie': writeCookie(spot, '') } })
  }

  async #act(rest: string, visit: Visit, caller: Caller): Promise<Response> {
    const { audit, actions } = this.#parts
    const action = actionOf(rest.slice('actions/'.length))
    if (action === undefined) throw new Refusal('NOT_FOUND')
    assertMethod(visit.request, 'POST')
    const database = this.#database(visit.query)
    const call = { action, database, identity: caller.identity, audit }
    let body: Readonly<Record<string, unknown>>
    try {
      assertRole(caller, 'operate')
      this.#assertMeant(visit.request, visit.host, caller)
      const own = caller.identity.actions
      if (!actions.includes(action) || (own !== undefined && !own.includes(action))) {
        throw new Refusal('ACTION_NOT_ALLOWED')
      }
      body = await bodyOf(visit.request)
    } catch (error) {
      const refusal = explain(error)
      await tellRefused(call, refusal)
      throw refusal
    }
    return jsonAnswer(JSON.stringify(await carryOut(call, body)))
  }

  #events({ request }: Visit, caller: Caller, { feed }: WatchedDatabase): Response {
    if (this.#listeners >= mostListeners) {
      throw new Refusal('BUSY', { headers: { 'retry-after': '5' } })
    }
    const { authenticator, streamTimes } = this.#parts
    if (request.method === 'HEAD') return answer(null)
    this.#listeners += 1
    let open = true
    const stream = eventStream(
      feed,
      {
        lastEventId: request.headers.get('last-event-id'),
        stillValid: () => authenticator.stillValid(caller),
        signal: request.signal,
        onEnd: () => {
          if (open) this.#listeners -= 1
          open = false
        },
      },
      streamTimes,
    )
    return answer(stream, {
      // Some proxies would gather events before they pass them on.
      headers: { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' },
    })
  }

  #info(caller: Caller): Info {
    const { authenticator, sessions, redactor, databases, info } = this.#parts
    const { identity, session } = caller
    const csrf = authenticator.csrfOf(caller)
    return {
      version,
      identity: { name: identity.name, role: identity.role },
      ...(csrf === undefined ? {} : { csrf }),
      ...(session === undefined
        ? {}
        : { expiresAt: new Date(sessions.lastMs(session)).toISOString() }),
      actions: this.#parts.actions.filter(
        (action) =>
          mayAs(identity, 'operate') &&
          (identity.actions === undefined || identity.actions.includes(action)),
      ),
      redaction: { keys: redactor.keys, queries: redactor.queries },
      databases: databases.map(({ name, examine, interventions }) => ({
        name,
        features: { doctor: examine !== undefined, actions: interventions !== undefined },
      })),
      ...info,
    }
  }

  #database(query: URLSearchParams): WatchedDatabase {
    const { databases } = this.#parts
    const name = textOf(query, 'database')
    const found =
      name === undefined ? databases[0] : databases.find((database) => database.name === name)
    if (found === undefined) throw new Refusal('NO_SUCH_DATABASE')
    return found
  }

  /** A person at a page of ours meant it, or a program with a token of its own. */
  #assertMeant(request: Request, host: string, caller: Caller): void {
    const { authenticator, origins } = this.#parts
    const needsOrigin = caller.via !== 'bearer'
    assertSameOrigin(request.headers, { host, origins }, { needsOrigin })
    authenticator.assertCsrf(caller, request.headers.get('x-holdfast-csrf'))
  }

  /** Whoever comes keeps the session alive. */
  #refreshed(response: Response, { spot }: Visit, { session }: Caller): Response {
    const { sessions } = this.#parts
    const touched = session === undefined ? undefined : sessions.touch(session)
    if (touched !== undefined && !response.headers.has('set-cookie')) {
      response.headers.set('set-cookie', writeCookie(spot, sessions.write(touched)))
    }
    return response
  }
}

const version = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    readonly version: string
  }
).version

/** Against pages of others that had their own name point at this machine. */
function assertHost(host: string, hosts: readonly string[] | undefined): void {
  if (hosts === undefined) return
  const shown = host.toLowerCase()
  if (!hosts.includes(shown) && !hosts.includes(shown.replace(/:\d{1,5}$/, ''))) {
    throw new Refusal('BAD_HOST')
  }
}

function assertMethod({ method }: Request, allowed: 'GET' | 'POST'): void {
  if (method === allowed || (method === 'HEAD' && allowed === 'GET')) return
  throw new Refusal('METHOD', { headers: { allow: allowed === 'GET' ? 'GET, HEAD' : 'POST' } })
}

function assertRole({ identity }: Caller, role: Role): void {
  if (!mayAs(identity, role)) throw new Refusal('ROLE_TOO_LOW')
}

async function metricsAnswer({ metrics, reads }: WatchedDatabase): Promise<Response> {
  if (metrics === undefined) throw new Refusal('NOT_FOUND')
  const headers = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }
  return answer(await reads.read('metrics', async () => await metrics.prometheus()), { headers })
}

function closed(isApi: boolean): Response {
  const refusal = new Refusal('CLOSED')
  if (isApi) return refusalAnswer(refusal)
  const { message, next } = refusal.body
  const headers = { 'content-type': 'text/plain; charset=utf-8' }
  return answer(`${message}\n${next}\n`, { status: refusal.status, headers })
}

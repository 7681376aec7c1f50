import type { Authenticator, Caller } from '../auth/authenticator.ts'
import type { Sessions } from '../auth/sessions.ts'
import { mayAs } from '../core/identity.ts'
import { packageVersion } from '../core/package-files.ts'
import { Refusal } from '../core/refusals.ts'
import { fixedText, type ShownText } from '../core/shown-text.ts'
import type { Action, Info, Role } from '../core/wire.ts'
import { answer, jsonAnswer, refusalAnswer } from '../http/answer.ts'
import { routeOf } from '../http/base-path.ts'
import { cookieSpot, type CookieSpot, readCookies, writeCookie } from '../http/cookie.ts'
import { bodyOf, checkedUrl, textOf } from '../http/limits.ts'
import { contextOf } from '../http/request-context.ts'
import { assertNotFromElsewhere, assertSameOrigin } from '../http/same-origin.ts'
import type { ClientOf } from '../http/trusted-proxies.ts'
import type { Redactor } from '../watch/redactor.ts'
import type { WatchedDatabase } from '../watch/watched-database.ts'
import { type Audit, carryOut, tellRefused } from './actions.ts'
import { routeAt } from './api-routes.ts'
import type { DataRoute } from './data-routes.ts'
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
  readonly clientOf: ClientOf
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
    const { authenticator, hosts, origins, base, clientAddress, clientOf } = this.#parts
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
      spot: cookieSpot(url, { host, origins }, shownBase ?? ''),
      address:
        clientAddress === undefined
          ? clientOf(context.address, request.headers.get('x-forwarded-for'))
          : clientAddress(request),
    }
    if (!isApi) {
      const page = pageAnswer(path, shownBase)
      if (page === undefined) throw new Refusal('NOT_FOUND')
      assertMethod(request, 'GET')
      return page
    }
    // The only one that needs no caller.
    const { kind } = routeAt(path)?.target ?? {}
    if (kind === 'login') return await this.#login(visit)
    const caller = await authenticator.callerOf(
      request,
      readCookies(request.headers.get('cookie'), visit.spot.name),
      visit.address,
    )
    return this.#refreshed(await this.#known(path, visit, caller), visit, caller)
  }

  async #known(path: string, visit: Visit, caller: Caller): Promise<Response> {
    const { request, query } = visit
    const route = routeAt(path)
    const role = route?.role ?? 'view'
    // Who may look and not act is told so by the action, which writes it down.
    assertRole(caller, role === 'metrics' ? 'metrics' : 'view')
    if (route === undefined) throw new Refusal('NOT_FOUND')
    assertMethod(request, route.method)
    const { target } = route
    if (route.method === 'GET' && target.kind !== 'metrics') assertNotFromElsewhere(request.headers)
    switch (target.kind) {
      case 'metrics':
        return await this.#metrics(this.#database(query))
      case 'login':
        return await this.#login(visit)
      case 'logout':
        return await this.#logout(visit, caller)
      case 'info':
        return jsonAnswer(this.#parts.redactor.json('info', this.#info(caller)))
      case 'locks': {
        const { feed, reads } = this.#database(query)
        return jsonAnswer(await reads.read('locks', async () => (await feed.current()).json, 0))
      }
      case 'events':
        return this.#events(visit, caller, this.#database(query))
      case 'history': {
        const points = this.#database(query).history.points(textOf(query, 'lock'))
        return jsonAnswer(this.#parts.redactor.json('history', { points }))
      }
      case 'history-tree': {
        const tree = this.#database(query).history.treeAt(textOf(query, 'at') ?? '')
        if (tree === undefined) throw new Refusal('NOT_FOUND')
        return jsonAnswer(tree)
      }
      case 'data':
        return await this.#data(target.data, query)
      case 'action':
        return await this.#act(target.action, visit, caller)
    }
  }

  async #metrics({ metrics, reads, redactor, engine }: WatchedDatabase): Promise<Response> {
    if (metrics === undefined) throw new Refusal(engine === 'innodb' ? 'NOT_OFFERED' : 'NOT_FOUND')
    const ask = async (): Promise<ShownText> => redactor.metrics(await metrics.prometheus())
    const headers = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }
    return answer(await reads.read('metrics', ask), { headers })
  }

  async #data(route: DataRoute, query: URLSearchParams): Promise<Response> {
    const database = this.#database(query)
    const { report, about, json, keepMs } = route(database, query)
    const { reads, redactor } = database
    const question = JSON.stringify([report, ...about])
    return jsonAnswer(await reads.read(question, () => json(redactor), keepMs))
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
    const csrf = authenticator.csrfOf(caller)
    const body = this.#parts.redactor.json('login', {
      identity: { name, role },
      ...(csrf === undefined ? {} : { csrf }),
    })
    const cookie = writeCookie(spot, sessions.write(caller.session))
    return jsonAnswer(body, { headers: { 'set-cookie': cookie } })
  }

  async #logout({ request, host, spot }: Visit, caller: Caller): Promise<Response> {
    assertMethod(request, 'POST')
    this.#assertMeant(request, host, caller)
    if (caller.session !== undefined) await this.#parts.sessions.end(caller.session)
    return jsonAnswer(fixedText('{}'), { headers: { 'set-cookie': writeCookie(spot, '') } })
  }

  async #act(action: Action, visit: Visit, caller: Caller): Promise<Response> {
    const { audit, actions, redactor } = this.#parts
    const database = this.#database(visit.query)
    const call = { action, database, identity: caller.identity, audit, redactor }
    // First of all, so that the audit can say what a refused attempt was about; told of last.
    const { body, unreadable } = await bodyOf(visit.request).then(
      (read) => ({ body: read, unreadable: undefined }),
      (error: unknown) => ({ body: {}, unreadable: explain(error) }),
    )
    try {
      assertRole(caller, 'operate')
      this.#assertMeant(visit.request, visit.host, caller)
      const own = caller.identity.actions
      if (!actions.includes(action) || (own !== undefined && !own.includes(action))) {
        throw new Refusal('ACTION_NOT_ALLOWED')
      }
      if (unreadable !== undefined) throw unreadable
    } catch (error) {
      const refusal = explain(error)
      await tellRefused(call, body, refusal)
      throw refusal
    }
    return jsonAnswer(redactor.json('done', await carryOut(call, body)))
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
      version: packageVersion(),
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
      databases: databases.map(({ name, engine, examine, interventions }) => ({
        name,
        engine,
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

function closed(isApi: boolean): Response {
  const refusal = new Refusal('CLOSED')
  if (isApi) return refusalAnswer(refusal)
  const { message, next } = refusal.body
  const headers = { 'content-type': 'text/plain; charset=utf-8' }
  return answer(fixedText(`${message}\n${next}\n`), { status: refusal.status, headers })
}

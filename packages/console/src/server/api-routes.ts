import type { Action, Role } from '../core/wire.ts'
import { allActions } from './actions.ts'
import { type DataRoute, dataRoutes, sessionRoute } from './data-routes.ts'

/** Something that the console answers beside its pages. */
export interface ApiRoute {
  /** As it is matched; `<pid>` stands for a number. */
  readonly path: string
  readonly method: 'GET' | 'POST'
  /** What a caller needs at least; `nobody` is asked for nothing. */
  readonly role: Role | 'nobody'
}

/** How the handler answers a path. */
export type Target =
  | { readonly kind: 'metrics' | 'login' | 'logout' | 'info' | 'locks' | 'events' }
  | { readonly kind: 'history' | 'history-tree' }
  | { readonly kind: 'data'; readonly data: DataRoute }
  | { readonly kind: 'action'; readonly action: Action }

interface Fixed extends ApiRoute {
  readonly target: Target
}

const get = (path: string, target: Target, role: Role = 'view'): Fixed => ({
  path,
  method: 'GET',
  role,
  target,
})
const post = (path: string, target: Target, role: Fixed['role']): Fixed => ({
  path,
  method: 'POST',
  role,
  target,
})

const fixed: readonly Fixed[] = [
  get('metrics', { kind: 'metrics' }, 'metrics'),
  post('api/login', { kind: 'login' }, 'nobody'),
  post('api/logout', { kind: 'logout' }, 'view'),
  get('api/info', { kind: 'info' }),
  get('api/locks', { kind: 'locks' }),
  get('api/events', { kind: 'events' }),
  get('api/history', { kind: 'history' }),
  get('api/history/tree', { kind: 'history-tree' }),
  ...[...dataRoutes].map(([name, data]) => get(`api/${name}`, { kind: 'data', data })),
  ...allActions.map((action) =>
    post(`api/actions/${action}`, { kind: 'action', action }, 'operate'),
  ),
]

const byPath: ReadonlyMap<string, Fixed> = new Map(fixed.map((route) => [route.path, route]))
const session: ApiRoute = { path: 'api/session/<pid>', method: 'GET', role: 'view' }

/** Every route there is: the handler answers nothing else, so that a test of all of them misses none. */
export const apiRoutes: readonly ApiRoute[] = [...fixed, session]

/** What is at a path, if anything. */
export function routeAt(path: string): Fixed | undefined {
  const found = byPath.get(path)
  if (found !== undefined) return found
  const data = path.startsWith('api/') ? sessionRoute(path.slice('api/'.length)) : undefined
  return data === undefined ? undefined : { ...session, target: { kind: 'data', data } }
}

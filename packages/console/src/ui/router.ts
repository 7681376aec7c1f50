/**
 * The address says everything that is to be seen, so that a link can be handed to somebody else and the
 * back button works. A page is the last part of the path, all else is in the query: no page is deeper than
 * another, and relative addresses work wherever the console is mounted.
 */
import { base } from './base.ts'
import { useSyncExternalStore } from './external-store.ts'

export const pages = ['now', 'locks', 'ledger', 'claims', 'jobs', 'schedules', 'doctor'] as const
export type PageName = (typeof pages)[number]

export interface Place {
  readonly page: PageName | undefined
  readonly query: URLSearchParams
}

export type Query = Readonly<Record<string, string | number | undefined>>

const listeners = new Set<() => void>()
let current = location.href

function announce(): void {
  if (location.href === current) return
  current = location.href
  for (const listener of listeners) listener()
}
addEventListener('popstate', announce)

/** Where we are; renders again when that changes. */
export function usePlace(): Place {
  return read(useSyncExternalStore(subscribe, () => current))
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function read(href: string): Place {
  const url = new URL(href)
  const name = url.pathname.slice(base.pathname.length) || 'now'
  return { page: pages.find((page) => page === name), query: url.searchParams }
}

/** The address of a page, of the database that is looked at. */
export function address(page: PageName, query: Query = {}): string {
  const database = read(current).query.get('database') ?? undefined
  const text = new URLSearchParams(
    Object.entries({ database, ...query }).flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [[name, String(value)]],
    ),
  ).toString()
  return `${base.pathname}${page}${text === '' ? '' : `?${text}`}`
}

/** The address of this page with some of its query changed; `undefined` takes a name out. */
export function changed(place: Place, changes: Query): string {
  return address(place.page ?? 'now', { ...Object.fromEntries(place.query), ...changes })
}

/** Goes there. `replace` is for what a person would not want to go back through. */
export function go(href: string, options: { readonly replace?: boolean } = {}): void {
  if (options.replace) history.replaceState(null, '', href)
  else history.pushState(null, '', href)
  announce()
}

/** Makes ordinary links of ours stay within the page. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  const link = event.target instanceof Element ? event.target.closest('a[data-page]') : null
  const href = link?.getAttribute('href')
  if (!href) return
  event.preventDefault()
  const { page } = read(location.href)
  go(href)
  if (read(location.href).page !== page) scrollTo(0, 0)
}

/**
 * The tree, each second, by server-sent events. When the stream breaks it is opened again, at first at
 * once and then ever more slowly, and what was seen last stays on the page with a mark that it is old.
 */
import type { ApiError, TreeEvent } from '../../core/wire.ts'
import { createStore, type Store } from '../external-store.ts'
import { askForAccess } from './info.ts'
import { route } from './api.ts'

export interface Live {
  readonly state: 'connecting' | 'live' | 'lost'
  readonly tree?: TreeEvent
  /** When the tree came, by this machine's clock: ages grow from there. */
  readonly receivedAt?: number
  /** The server is there, and the database does not answer it. */
  readonly trouble?: ApiError
  /** When the next try is made. */
  readonly retryAt?: number
}

export const live: Store<Live> = createStore<Live>({ state: 'connecting' })

const firstDelayMs = 500
const longestDelayMs = 15_000
/** The server sends something at least every ten seconds; a stream that is silent for longer is dead. */
const silenceMs = 25_000

let source: EventSource | undefined
let timer: number | undefined
let failures = 0
let database: string | undefined

/** Listens to one database, instead of whichever was listened to. */
export function listenTo(name: string | undefined): void {
  database = name
  live.set({ state: 'connecting' })
  connect()
}

/** Does not wait for the next try. */
export function connect(): void {
  disconnect()
  const opened = new EventSource(route('events', { database }))
  source = opened
  expectSomething()
  opened.addEventListener('tree', (event: MessageEvent<string>) => {
    failures = 0
    expectSomething()
    const tree = JSON.parse(event.data) as TreeEvent
    live.set({ state: 'live', tree, receivedAt: Date.now() })
  })
  opened.addEventListener('trouble', (event: MessageEvent<string>) => {
    expectSomething()
    const { error } = JSON.parse(event.data) as { readonly error: ApiError }
    live.set({ ...live.get(), state: 'live', trouble: error })
  })
  opened.addEventListener('bye', () => lose(0))
  opened.addEventListener('error', () => lose())
}

export function disconnect(): void {
  source?.close()
  source = undefined
  clearTimeout(timer)
}

function expectSomething(): void {
  clearTimeout(timer)
  timer = window.setTimeout(() => lose(0), silenceMs)
}

function lose(delayMs = Math.min(longestDelayMs, firstDelayMs * 2 ** failures)): void {
  disconnect()
  failures += 1
  // So that many browsers do not come back in the same moment.
  const wait = delayMs * (0.75 + Math.random() / 2)
  const { trouble: _, ...before } = live.get()
  live.set({ ...before, state: delayMs === 0 ? before.state : 'lost', retryAt: Date.now() + wait })
  timer = window.setTimeout(() => {
    connect()
    // An event stream does not say why it was refused; this does, if it was for want of a login.
    if (failures > 1) void askForAccess()
  }, wait)
}

addEventListener('online', () => {
  if (source === undefined) connect()
})
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && source === undefined && live.get().state === 'lost') connect()
})

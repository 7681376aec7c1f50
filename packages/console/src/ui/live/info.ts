/** Who looks, at what, and what they may do. Asked once, and again after a login. */
import type { Info } from '../../core/wire.ts'
import { createStore, type Store } from '../external-store.ts'
import { ApiFailure, ask } from './api.ts'

export type Access =
  | { readonly kind: 'asking' }
  | { readonly kind: 'open'; readonly info: Info }
  | { readonly kind: 'refused'; readonly failure: ApiFailure }

export const access: Store<Access> = createStore<Access>({ kind: 'asking' })

/** Asks the server; whatever it says ends up in `access`. */
export async function askForAccess(): Promise<void> {
  try {
    access.set({ kind: 'open', info: await ask<Info>('info') })
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error
    // Whoever is in stays in while the server is away: the page keeps what it shows.
    const away = error.status !== 401 && error.error.code !== 'CLOSED'
    if (away && access.get().kind === 'open') return
    access.set({ kind: 'refused', failure: error })
  }
}

/** Of a request that failed: was it because there is no login any more? */
export function noteRefusal(failure: ApiFailure): void {
  if (failure.status === 401 && access.get().kind === 'open') {
    access.set({ kind: 'refused', failure })
  }
}

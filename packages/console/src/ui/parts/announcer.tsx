import type { JSX } from 'preact'
import { createStore, useStore } from '../external-store.ts'

const words = createStore('')

/** Has a screen reader say something when it is done with what it says now. */
export function announce(text: string): void {
  // The same words twice would not be heard the second time.
  words.set(words.get() === text ? `${text}\u00a0` : text)
}

/** Is in the page once. */
export function Announcer(): JSX.Element {
  return (
    <div class="unseen" role="status" aria-live="polite" aria-atomic="true">
      {useStore(words)}
    </div>
  )
}

/**
 * Keys for those who like them. They can be turned off, because single keys get in the way of speech input
 * and of some screen readers; with a modifier, in a field or in a dialog they do nothing anyway.
 */
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { createStore, useStore } from './external-store.ts'
import { address, changed, go, type PageName, usePlace } from './router.ts'

const key = 'holdfast-console-shortcuts'
const enabled = createStore(remembered())
const jumpMs = 1500

const jumps: Readonly<Record<string, readonly [PageName, string]>> = {
  n: ['now', 'Now'],
  l: ['locks', 'Locks'],
  b: ['ledger', 'Ledger (its books)'],
  c: ['claims', 'Claims and leases'],
  j: ['jobs', 'Dead jobs'],
  s: ['schedules', 'Schedules'],
  d: ['doctor', 'Doctor'],
}

function remembered(): boolean {
  try {
    return localStorage.getItem(key) !== 'off'
  } catch {
    return true
  }
}

function turn(on: boolean): void {
  enabled.set(on)
  try {
    localStorage.setItem(key, on ? 'on' : 'off')
  } catch {
    // Then it lasts as long as the page.
  }
}

/** Listens for the keys, and shows what they are. */
export function Shortcuts(props: {
  readonly open: boolean
  readonly onOpen: (open: boolean) => void
  readonly offered: readonly PageName[]
}): JSX.Element | null {
  const on = useStore(enabled)
  const place = usePlace()
  useEffect(() => {
    if (!on) return undefined
    let jumpedAt = 0
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
      const target = event.target as Element
      if (target.closest('input, textarea, select, [contenteditable], dialog')) return
      const jumping = performance.now() - jumpedAt < jumpMs
      const jump = jumping ? jumps[event.key] : undefined
      jumpedAt = event.key === 'g' ? performance.now() : 0
      if (jump) go(address(jump[0]))
      else if (event.key === '?') props.onOpen(true)
      else if (event.key === 'Escape') {
        go(changed(place, { pid: undefined, lock: undefined, job: undefined }))
      }
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  })
  if (!props.open) return null
  return <Help on={on} offered={props.offered} onClose={() => props.onOpen(false)} />
}

function Help(props: {
  readonly on: boolean
  readonly offered: readonly PageName[]
  readonly onClose: () => void
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  const [on, setOn] = useState(props.on)
  useEffect(() => dialog.current?.showModal(), [])
  const known = Object.entries(jumps).filter(([, [page]]) => props.offered.includes(page))
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="help-title" onClose={props.onClose}>
      <h2 id="help-title">Keys</h2>
      <dl class="keys">
        {known.map(([letter, [, name]]) => (
          <div key={letter}>
            <dt>
              <kbd>g</kbd> then <kbd>{letter}</kbd>
            </dt>
            <dd>{name}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>↑</kbd> <kbd>↓</kbd>
          </dt>
          <dd>From session to session</dd>
        </div>
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>Close the details</dd>
        </div>
        <div>
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>This list</dd>
        </div>
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={on}
          onChange={(event) => {
            setOn(event.currentTarget.checked)
            turn(event.currentTarget.checked)
          }}
        />
        Listen to single keys
      </label>
      <div class="dialog-buttons">
        <button type="button" class="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  )
}

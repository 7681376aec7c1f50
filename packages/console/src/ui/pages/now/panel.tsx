import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Icon } from '../../parts/icon.tsx'
import { changed, go, usePlace } from '../../router.ts'

/**
 * Details beside what is shown. It takes the focus when it opens, so that a keyboard goes on from there,
 * and gives it back when it closes.
 */
export function Panel(props: {
  readonly kind: string
  readonly title: string
  readonly children: ComponentChildren
}): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null)
  const place = usePlace()
  const close = (): void => go(changed(place, { pid: undefined, lock: undefined }))

  useEffect(() => {
    const before = document.activeElement
    heading.current?.focus({ preventScroll: innerWidth >= 1100 })
    return () => {
      if (!(before instanceof HTMLElement) || before === document.body) return
      const pid = before.closest('[data-pid]')?.getAttribute('data-pid')
      // The list may have been drawn anew; the same session is as good.
      const same = pid && document.querySelector<HTMLElement>(`li[data-pid="${pid}"] .row-session`)
      const target = before.isConnected ? before : same
      // In a narrow window it can be seen, and focused, only once the details are gone.
      if (target) requestAnimationFrame(() => target.focus())
    }
  }, [])

  return (
    <aside
      class="panel"
      aria-label={`${props.kind} ${props.title}`}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || document.querySelector('dialog[open]')) return
        event.stopPropagation()
        close()
      }}
    >
      <header class="panel-head">
        <div>
          <p class="panel-kind">{props.kind}</p>
          <h2 ref={heading} tabIndex={-1}>
            {props.title}
          </h2>
        </div>
        <button type="button" class="button button-icon" onClick={close}>
          <Icon name="close" />
          <span class="unseen">Close the details</span>
        </button>
      </header>
      {props.children}
    </aside>
  )
}

/** Names and values. */
export function Facts(props: {
  readonly facts: readonly (readonly [string, ComponentChildren])[]
}): JSX.Element {
  return (
    <dl class="facts">
      {props.facts.map(([name, value]) =>
        value === undefined || value === '' ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  )
}

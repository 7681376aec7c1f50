import type { ObservedLock } from 'holdfast/observe'
import type { ComponentChildren, JSX } from 'preact'
import { changed, usePlace } from '../router.ts'
import { Icon } from './icon.tsx'

/** A link within the console. */
export function Link(props: {
  readonly to: string
  readonly class?: string
  readonly current?: boolean
  readonly children: ComponentChildren
}): JSX.Element {
  return (
    <a
      href={props.to}
      data-page=""
      class={props.class}
      aria-current={props.current ? 'true' : undefined}
    >
      {props.children}
    </a>
  )
}

/** Opens what is known about a session beside what is shown. */
export function SessionLink(props: {
  readonly pid: number
  readonly children?: ComponentChildren
}): JSX.Element {
  const place = usePlace()
  if (props.pid === 0) return <>a prepared transaction</>
  return (
    <Link to={changed(place, { pid: props.pid, lock: undefined })} class="session-link">
      {props.children ?? `pid ${props.pid}`}
    </Link>
  )
}

/** Opens what is known about a lock. */
export function LockLink({ lock }: { readonly lock: ObservedLock }): JSX.Element {
  const place = usePlace()
  return (
    <Link to={changed(place, { lock: lock.name, pid: undefined })} class="lock-link">
      <Icon name="lock" />
      <code>{lock.name}</code>
    </Link>
  )
}

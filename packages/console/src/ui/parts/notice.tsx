import type { ComponentChildren, JSX } from 'preact'
import type { ApiFailure } from '../live/api.ts'
import type { Resource } from '../live/resource.ts'
import { Icon, type IconName } from './icon.tsx'

/** Says that there is nothing, why, and what to do to have something. */
export function Empty(props: {
  readonly icon?: IconName
  readonly title: string
  readonly children?: ComponentChildren
}): JSX.Element {
  return (
    <div class="empty">
      {props.icon && <Icon name={props.icon} />}
      <p class="empty-title">{props.title}</p>
      {props.children}
    </div>
  )
}

/** What went wrong, and the next step. */
export function Failure({ failure }: { readonly failure: ApiFailure }): JSX.Element {
  const { code, message, next, sqlState } = failure.error
  return (
    <div class="notice notice-bad" role="alert">
      <Icon name="warning" />
      <div>
        <p class="notice-title">{message}</p>
        <p>{next}</p>
        <p class="faint">
          <code>{code}</code>
          {sqlState && (
            <>
              {' '}
              · SQLSTATE <code>{sqlState}</code>
            </>
          )}
        </p>
      </div>
    </div>
  )
}

/** Data when it is there; before that a word, and with it or instead of it what went wrong. */
export function Loaded<T>(props: {
  readonly of: Resource<T>
  readonly children: (data: T) => ComponentChildren
}): JSX.Element {
  const { data, failure } = props.of
  return (
    <>
      {failure && <Failure failure={failure} />}
      {data === undefined
        ? !failure && <p class="loading">Asking the server…</p>
        : props.children(data)}
    </>
  )
}

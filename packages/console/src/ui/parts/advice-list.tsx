import type { Advice } from 'holdfast/observe'
import type { JSX } from 'preact'
import { Icon } from './icon.tsx'

/** What is wrong, and what to do about it; `about` where that is not plain from the place. */
export function AdviceList(props: {
  readonly advice: readonly Advice[]
  readonly about?: string
}): JSX.Element | null {
  const { advice, about } = props
  if (advice.length === 0) return null
  return (
    <ul class="advice">
      {advice.map((one) => (
        <li key={one.code}>
          <Icon name="warning" />
          <div>
            <p class="advice-what">
              {about !== undefined && <code>{about}: </code>}
              {one.what}
            </p>
            <p class="advice-fix">
              <span class="word">Do</span> {one.fix}
            </p>
          </div>
        </li>
      ))}
    </ul>
  )
}

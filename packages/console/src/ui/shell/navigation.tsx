import type { JSX } from 'preact'
import { Icon } from '../parts/icon.tsx'
import { address, type PageName } from '../router.ts'

export const names: Readonly<Record<PageName, string>> = {
  now: 'Now',
  locks: 'Locks',
  ledger: 'Ledger',
  claims: 'Claims',
  jobs: 'Jobs',
  schedules: 'Schedules',
  doctor: 'Doctor',
}

/** The pages: at the side, or at the foot of a narrow window. */
export function Navigation(props: {
  readonly current: PageName
  readonly offered: readonly PageName[]
}): JSX.Element {
  return (
    <nav class="navigation" aria-label="Pages">
      <ul>
        {props.offered.map((page) => (
          <li key={page}>
            <a
              href={address(page)}
              data-page=""
              aria-current={page === props.current ? 'page' : undefined}
            >
              <Icon name={page} />
              <span>{names[page]}</span>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}

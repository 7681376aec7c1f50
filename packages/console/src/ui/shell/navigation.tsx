import type { JSX } from 'preact'
import { Icon } from '../parts/icon.tsx'
import { address, type PageName, pages } from '../router.ts'

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
export function Navigation({ current }: { readonly current: PageName }): JSX.Element {
  return (
    <nav class="navigation" aria-label="Pages">
      <ul>
        {pages.map((page) => (
          <li key={page}>
            <a
              href={address(page)}
              data-page=""
              aria-current={page === current ? 'page' : undefined}
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

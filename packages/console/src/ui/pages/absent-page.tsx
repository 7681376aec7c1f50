import type { JSX } from 'preact'
import { Empty } from '../parts/notice.tsx'
import { Link } from '../parts/link.tsx'
import { address, type PageName } from '../router.ts'
import { names } from '../shell/navigation.tsx'

const why: Readonly<Record<PageName, string>> = {
  now: '',
  doctor: '',
  locks: 'The use of locks over time is recorded on PostgreSQL only.',
  ledger: 'Quota, credits and stock are for PostgreSQL only.',
  claims:
    'Claims and leases work on MariaDB and MySQL, but the console cannot show them there. Look into your own table of claims, and into holdfast_lease_holder.',
  jobs: 'The ready-made queue of jobs is for PostgreSQL only. For dead rows of your own tables, call dead.list() of your claims.',
  schedules:
    'Schedules work on MariaDB and MySQL, but the console cannot show them there. Call history() of a schedule to read its ticks.',
}

/** A page that this database has not: by an old link, or from another database. */
export function AbsentPage({ page }: { readonly page: PageName }): JSX.Element {
  return (
    <>
      <h1 class="page-title">{names[page]}</h1>
      <Empty icon={page} title="This page is for PostgreSQL; this database is MariaDB or MySQL.">
        <p>{why[page]}</p>
        <p>
          Here there are <Link to={address('now')}>Now</Link> and{' '}
          <Link to={address('doctor')}>Doctor</Link>.
        </p>
      </Empty>
    </>
  )
}

import type { ObservedClaims, ObservedLease } from 'holdfast/observe'
import type { JSX } from 'preact'
import { count, length, moment, relative } from '../format.ts'
import { useDatabase } from '../live/context.ts'
import { useResource } from '../live/resource.ts'
import { AdviceList } from '../parts/advice-list.tsx'
import { Badge } from '../parts/badge.tsx'
import { DataTable } from '../parts/data-table.tsx'
import { Link } from '../parts/link.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { address } from '../router.ts'
import { useNow } from '../ticker.ts'

/** Who works on which rows, and who has what for longer than a transaction. */
export function ClaimsPage(): JSX.Element {
  const database = useDatabase()
  const claims = useResource<{ readonly claims: readonly ObservedClaims[] }>(
    'claims',
    { database },
    5000,
  )
  const leases = useResource<{ readonly leases: readonly ObservedLease[] }>(
    'leases',
    { database },
    5000,
  )
  return (
    <>
      <h1 class="page-title">Claims and leases</h1>
      <section class="section">
        <h2>Claims</h2>
        <Loaded of={claims}>{(data) => <Claims claims={data.claims} />}</Loaded>
      </section>
      <section class="section">
        <h2>Leases</h2>
        <Loaded of={leases}>{(data) => <Leases leases={data.leases} />}</Loaded>
      </section>
    </>
  )
}

function Claims({ claims }: { readonly claims: readonly ObservedClaims[] }): JSX.Element {
  if (claims.length === 0) {
    return (
      <Empty icon="claims" title="No table is watched.">
        <p>
          Jobs of the ready-made table are seen by themselves. To see a table of your own, name it
          to the console with <code>--claims</code>, or in the option <code>claims</code> where it
          is mounted.
        </p>
      </Empty>
    )
  }
  const counted = (value: number | undefined, capped: boolean): string =>
    value === undefined ? 'not counted' : `${capped && value > 0 ? '≥ ' : ''}${count(value)}`
  return (
    <>
      {claims.map(({ table, queue, advice }) => (
        <AdviceList
          key={`${table}/${queue ?? ''}`}
          about={queue === undefined ? table : `${table} ${queue}`}
          advice={advice}
        />
      ))}
      <DataTable
        caption="Tables whose rows are claimed"
        rows={claims}
        keyOf={({ table, queue }) => `${table}/${queue ?? ''}`}
        columns={[
          {
            name: 'Table',
            heads: true,
            cell: ({ table, queue }) => (
              <>
                <code>{table}</code>
                {queue !== undefined && <span class="faint"> queue {queue}</span>}
              </>
            ),
          },
          { name: 'Ready', number: true, cell: ({ ready, capped }) => counted(ready, capped) },
          {
            name: 'Oldest ready',
            number: true,
            cell: ({ oldestReadyMs }) =>
              oldestReadyMs === undefined ? '–' : length(oldestReadyMs),
          },
          {
            name: 'Claimed',
            number: true,
            cell: ({ claimed, capped }) => counted(claimed, capped),
          },
          {
            name: 'Stranded',
            number: true,
            cell: ({ stranded, oldestStrandedMs }) =>
              stranded === undefined || stranded === 0 ? (
                (stranded ?? 'not counted')
              ) : (
                <b class="trouble">
                  {count(stranded)}
                  {oldestStrandedMs !== undefined && `, oldest ${length(oldestStrandedMs)}`}
                </b>
              ),
          },
          {
            name: 'Dead',
            number: true,
            cell: ({ dead, capped, queue }) => {
              if (!dead) return counted(dead, capped)
              const text = <b class="trouble">{counted(dead, capped)}</b>
              if (queue === undefined) return text
              return (
                <Link to={address('jobs', { queue })}>
                  {text}
                  <span class="unseen"> dead jobs of {queue}</span>
                </Link>
              )
            },
          },
        ]}
      />
    </>
  )
}

function Leases({ leases }: { readonly leases: readonly ObservedLease[] }): JSX.Element {
  const now = useNow()
  if (leases.length === 0) {
    return (
      <Empty icon="locks" title="No lease was taken lately.">
        <p>
          A lease is exclusion for longer than a transaction: <code>hf.leases.acquire(…)</code>, or
          a leader by <code>hf.leader(…)</code>.
        </p>
      </Empty>
    )
  }
  return (
    <DataTable
      caption="Leases"
      rows={leases}
      keyOf={({ scope, name }) => `${scope}/${name}`}
      columns={[
        {
          name: 'Name',
          heads: true,
          cell: ({ name, scope }) => (
            <>
              <code>{name}</code>
              {scope !== name && <span class="faint"> in {scope}</span>}
            </>
          ),
        },
        {
          name: 'State',
          cell: ({ held }) => (
            <Badge tone={held ? 'info' : 'plain'}>{held ? 'held' : 'free'}</Badge>
          ),
        },
        { name: 'Token', number: true, cell: ({ token }) => <code>{token}</code> },
        {
          name: 'Since',
          cell: ({ acquiredAt }) =>
            acquiredAt ? (
              <time dateTime={acquiredAt} title={moment(acquiredAt)}>
                {relative(acquiredAt, now)}
              </time>
            ) : (
              '–'
            ),
        },
        { name: 'Ends', cell: ({ expiresAt }) => (expiresAt ? relative(expiresAt, now) : '–') },
        { name: 'Note', cell: ({ note }) => note ?? '' },
      ]}
    />
  )
}

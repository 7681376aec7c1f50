import type { LockTree, NameSource, ObservedLock } from 'holdfast/observe'
import type { JSX } from 'preact'
import type { HistoryPoint } from '../../../core/wire.ts'
import { count, mode, plural } from '../../format.ts'
import { useDatabase, useDatabaseInfo } from '../../live/context.ts'
import { pagesOf } from '../../offered.ts'
import { useResource } from '../../live/resource.ts'
import { Age } from '../../parts/age.tsx'
import { LineChart } from '../../parts/chart/line-chart.tsx'
import { Link, SessionLink } from '../../parts/link.tsx'
import { Loaded } from '../../parts/notice.tsx'
import { address } from '../../router.ts'
import { Facts, Panel } from './panel.tsx'

const sources: Readonly<Record<NameSource, string>> = {
  annotation: 'its holder’s application_name, checked against the hash',
  registry: 'what a process noted in the database',
  process: 'this process, which has used it',
  known: 'Holdfast’s own lock',
  catalogue: 'the server’s catalogue',
  row: 'the row of the lock, which is called like it',
  none: 'nobody: it is not one of Holdfast’s, or was never noted',
}

const mostListed = 20

/** One lock: who has it, who wants it, and how that was before. */
export function LockPanel(props: { readonly name: string; readonly tree: LockTree }): JSX.Element {
  const { name, tree } = props
  const database = useDatabaseInfo()
  const holders = tree.sessions.filter(({ holds }) => holds.some((lock) => lock.name === name))
  const waiters = tree.sessions
    .filter(({ waitsFor }) => waitsFor?.name === name)
    .toSorted((a, b) => (b.waitingMs ?? 0) - (a.waitingMs ?? 0))
  const lock = holders[0]?.holds.find((one) => one.name === name) ?? waiters[0]?.waitsFor
  return (
    <Panel kind="Lock" title={name}>
      {lock === undefined && <p>Nobody holds it and nobody waits for it.</p>}
      {holders.length > 0 && (
        <section>
          <h3>{holders.length === 1 ? 'Held by' : `Held by ${holders.length}`}</h3>
          <ul class="plain-list">
            {holders.map((holder) => (
              <li key={holder.pid}>
                <SessionLink pid={holder.pid} /> {holder.application}{' '}
                <span class="faint">
                  {modeOf(holder.holds, name)}
                  {holder.transactionMs !== undefined && (
                    <>
                      , at most <Age ms={holder.transactionMs} />
                    </>
                  )}
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {waiters.length > 0 && (
        <section>
          <h3>{plural(waiters.length, 'waits', 'wait')} for it, in this order</h3>
          <ol class="queue">
            {waiters.slice(0, mostListed).map((waiter) => (
              <li key={waiter.pid}>
                <SessionLink pid={waiter.pid} /> {waiter.application}{' '}
                <span class="faint">
                  <Age ms={waiter.waitingMs ?? 0} />
                </span>
              </li>
            ))}
          </ol>
          {waiters.length > mostListed && (
            <p class="faint">and {waiters.length - mostListed} more</p>
          )}
        </section>
      )}
      <History name={name} />
      {lock && (
        <Facts
          facts={[
            ['Named by', sources[lock.source]],
            ['Meaning', lock.meaning],
            ['Mode', mode(lock.mode)],
            ['Table', lock.table],
            [database?.engine === 'innodb' ? 'Row' : 'Row (ctid)', lock.row],
            [database?.engine === 'innodb' ? 'Number' : 'In pg_locks', lock.id],
          ]}
        />
      )}
      {lock?.namespace && pagesOf(database).includes('locks') && (
        <p>
          <Link to={address('locks', { namespace: lock.namespace })}>
            All locks of <code>{lock.namespace}</code> over time
          </Link>
        </p>
      )}
    </Panel>
  )
}

function History({ name }: { readonly name: string }): JSX.Element {
  const database = useDatabase()
  const history = useResource<{ readonly points: readonly HistoryPoint[] }>(
    'history',
    { database, lock: name },
    5000,
  )
  return (
    <section>
      <h3>Lately</h3>
      <Loaded of={history}>
        {({ points }) =>
          points.length < 2 ? (
            <p class="faint">History is kept from now on, while somebody looks.</p>
          ) : (
            <LineChart
              title="Sessions that wait for it"
              times={points.map(({ at }) => at)}
              series={[{ name: 'waiting', values: points.map(({ waiting }) => waiting) }]}
              format={count}
              stepped
            />
          )
        }
      </Loaded>
    </section>
  )
}

function modeOf(holds: readonly ObservedLock[], name: string): string {
  return mode(holds.find((lock) => lock.name === name)?.mode ?? '')
}

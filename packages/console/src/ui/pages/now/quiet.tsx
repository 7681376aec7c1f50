import type { HotKey, LockTree, ObservedSession, TransactionReport } from 'holdfast/observe'
import type { JSX } from 'preact'
import { count, plural, shorten } from '../../format.ts'
import { stateOf } from '../../graph/session-state.ts'
import { useDatabase, useIsInnodb } from '../../live/context.ts'
import { useResource } from '../../live/resource.ts'
import { AdviceList } from '../../parts/advice-list.tsx'
import { Age, Growing } from '../../parts/age.tsx'
import { Badge } from '../../parts/badge.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Icon } from '../../parts/icon.tsx'
import { LockLink, SessionLink } from '../../parts/link.tsx'
import { Loaded } from '../../parts/notice.tsx'

/** Good news, said so that nobody wonders whether the page works. */
export function Quiet({ tree }: { readonly tree: LockTree }): JSX.Element {
  const holding = tree.sessions.filter(({ holds }) => holds.length > 0)
  return (
    <section class="quiet" aria-labelledby="quiet-title">
      <span class="quiet-sign">
        <Icon name="check" />
      </span>
      <div>
        <h2 id="quiet-title" class="headline">
          Nobody waits.
        </h2>
        <p>
          {holding.length === 0
            ? 'No session waits for a lock, and no named lock is held right now.'
            : `${plural(holding.length, 'session holds', 'sessions hold')} named locks, and nobody wants them.`}
        </p>
      </div>
    </section>
  )
}

/** Locks that are held while nobody waits. */
export function Holding({
  sessions,
}: {
  readonly sessions: readonly ObservedSession[]
}): JSX.Element | null {
  if (sessions.length === 0) return null
  return (
    <section class="section">
      <h2>Held, nobody waits</h2>
      <DataTable
        caption="Sessions that hold named locks"
        rows={sessions.slice(0, 50)}
        keyOf={({ pid }) => pid}
        columns={[
          { name: 'Session', heads: true, cell: ({ pid }) => <SessionLink pid={pid} /> },
          { name: 'Application', cell: ({ application }) => application },
          {
            name: 'Locks',
            cell: ({ holds }) => (
              <span class="chips">
                {holds.slice(0, 3).map((lock) => (
                  <LockLink key={`${lock.name}/${lock.mode}`} lock={lock} />
                ))}
                {holds.length > 3 && ` and ${holds.length - 3} more`}
              </span>
            ),
          },
          {
            name: 'Transaction',
            number: true,
            cell: ({ transactionMs }) =>
              transactionMs === undefined ? '–' : <Age ms={transactionMs} />,
          },
        ]}
      />
    </section>
  )
}

/** What will be tomorrow's incident: keys in demand, long transactions, what vacuum waits for. */
export function Watch(props: { readonly hotKeys: readonly HotKey[] }): JSX.Element {
  const database = useDatabase()
  const isInnodb = useIsInnodb()
  const transactions = useResource<TransactionReport>('transactions', { database, limit: 10 }, 5000)
  return (
    <div class="watch">
      <section class="section">
        <h2>Longest transactions</h2>
        <Loaded of={transactions}>
          {(report) => (
            <Growing since={transactions.at}>
              {() => <Transactions rows={report.longest} />}
            </Growing>
          )}
        </Loaded>
      </section>
      <div class="watch-side">
        {!isInnodb && (
          <section class="section">
            <h2>Vacuum</h2>
            {transactions.data && <Xmin report={transactions.data} />}
          </section>
        )}
        <section class="section">
          <h2>Hot keys</h2>
          {props.hotKeys.length === 0 ? (
            <p class="faint">Nobody waits for a key right now.</p>
          ) : (
            <ul class="plain-list">
              {props.hotKeys.map((key) => (
                <li key={key.name}>
                  <code>{key.name}</code>{' '}
                  <span class="faint">
                    {plural(key.waiting, 'waits', 'wait')}, longest <Age ms={key.longestWaitMs} />
                  </span>
                </li>
              ))}
            </ul>
          )}
        </section>
      </div>
    </div>
  )
}

/** Shorter ones are the daily business, and the console's own look among them. */
const longMs = 1000

function Transactions(props: { readonly rows: readonly ObservedSession[] }): JSX.Element {
  const rows = props.rows.filter(({ transactionMs = 0 }) => transactionMs >= longMs)
  if (rows.length === 0) {
    return <p class="faint">No transaction is open for longer than a second.</p>
  }
  return (
    <DataTable
      caption="Longest transactions"
      rows={rows}
      keyOf={({ pid }) => pid}
      columns={[
        { name: 'Session', heads: true, cell: ({ pid }) => <SessionLink pid={pid} /> },
        { name: 'Application', cell: ({ application, user }) => application || user },
        {
          name: 'State',
          cell: (session) => <Badge tone={stateOf(session).tone}>{stateOf(session).word}</Badge>,
        },
        {
          name: 'Open for',
          number: true,
          cell: ({ transactionMs }) => <Age ms={transactionMs ?? 0} />,
        },
        {
          name: 'Statement',
          wideOnly: true,
          cell: ({ query }) => <code class="one-line">{shorten(query, 60)}</code>,
        },
      ]}
    />
  )
}

function Xmin({ report }: { readonly report: TransactionReport }): JSX.Element {
  const { oldestXmin, advice } = report
  if (oldestXmin === undefined) {
    return <p class="faint">Nothing holds vacuum back.</p>
  }
  return (
    <>
      <p>
        Held back by {oldestXmin.pid ? <SessionLink pid={oldestXmin.pid} /> : `a ${oldestXmin.by}`}{' '}
        <span class="faint">
          {oldestXmin.who}, {plural(oldestXmin.age, 'transaction')} old
          {oldestXmin.age > 1e6 && ` (${count(Math.round(oldestXmin.age / 1e6))} million)`}
        </span>
      </p>
      <AdviceList advice={advice} />
    </>
  )
}

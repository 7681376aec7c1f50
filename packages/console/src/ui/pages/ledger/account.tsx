import type { AccountReport, ObservedAccount, UsageReport } from 'holdfast/observe'
import type { JSX } from 'preact'
import { amount, count, moment, relative, signed } from '../../format.ts'
import { useDatabase } from '../../live/context.ts'
import { useResource } from '../../live/resource.ts'
import { Badge } from '../../parts/badge.tsx'
import { LineChart } from '../../parts/chart/line-chart.tsx'
import { Command } from '../../parts/copy-button.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loaded } from '../../parts/notice.tsx'
import { changed, usePlace } from '../../router.ts'
import { useNow } from '../../ticker.ts'

/** One account: what it stands at, and how it came to that. */
export function Account(): JSX.Element {
  const { query } = usePlace()
  const database = useDatabase()
  const before = query.get('before') ?? undefined
  const report = useResource<AccountReport>(
    'account',
    {
      database,
      book: query.get('book') ?? '',
      key: query.get('key') ?? '',
      scope: query.get('scope') ?? undefined,
      before,
      movements: 40,
    },
    before === undefined ? 5000 : undefined,
  )
  return <Loaded of={report}>{(data) => <Report report={data} />}</Loaded>
}

function Report({ report }: { readonly report: AccountReport }): JSX.Element {
  const { query } = usePlace()
  const [latest] = report.accounts
  if (latest === undefined) {
    return (
      <Empty icon="search" title="There is no such account.">
        <p>
          Book, key and scope must be exactly those of the program. If its book has a scope of its
          own, as a tenant or a warehouse, name it above.
        </p>
      </Empty>
    )
  }
  return (
    <>
      <Balance account={latest} />
      {report.accounts.length > 1 && <Windows accounts={report.accounts} />}
      <div class="charts">
        <Holds report={report} />
        <Grants report={report} />
      </div>
      <Used />
      <Movements report={report} />
      <section class="section">
        <h2>In a terminal</h2>
        <Command
          text={`holdfast ledger show ${quoted(latest.book)} ${quoted(latest.key)}${query.get('scope') ? ` --scope ${quoted(latest.scope)}` : ''}`}
        />
      </section>
    </>
  )
}

function Balance({ account }: { readonly account: ObservedAccount }): JSX.Element {
  const figures: readonly (readonly [string, string])[] = [
    ['Credited', amount(account.credited)],
    ['Debited', amount(account.debited)],
    ['Held', amount(account.held)],
    [account.limitIsSet ? 'Allowance, set for it' : 'Allowance', amount(account.allowance)],
  ]
  return (
    <section class="balance" aria-labelledby="balance-title">
      <div>
        <h2 id="balance-title">
          {account.book} <code>{account.key}</code>
        </h2>
        <p class="balance-available">
          {amount(account.available)} <span>available</span>
        </p>
        {account.drift === '0' ? (
          <Badge tone="good">drift 0: the counters are what the movements say</Badge>
        ) : (
          <Badge tone="bad">
            drift {amount(account.drift)}: run holdfast audit, and keep the database as it is
          </Badge>
        )}
      </div>
      <dl class="figures">
        {figures.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

function Windows({ accounts }: { readonly accounts: readonly ObservedAccount[] }): JSX.Element {
  return (
    <section class="section">
      <h2>Windows</h2>
      <DataTable
        caption="Windows"
        rows={accounts}
        keyOf={({ windowStart }) => windowStart ?? ''}
        columns={[
          {
            name: 'From',
            heads: true,
            cell: ({ windowStart }) => (windowStart ? moment(windowStart) : '–'),
          },
          { name: 'To', cell: ({ windowEnd }) => (windowEnd ? moment(windowEnd) : '–') },
          { name: 'Used', number: true, cell: ({ debited }) => amount(debited) },
          { name: 'Held', number: true, cell: ({ held }) => amount(held) },
          { name: 'Available', number: true, cell: ({ available }) => amount(available) },
          { name: 'Drift', number: true, cell: ({ drift }) => amount(drift) },
        ]}
      />
    </section>
  )
}

function Movements({ report }: { readonly report: AccountReport }): JSX.Element {
  const place = usePlace()
  const { movements, next } = report
  const before = place.query.get('before')
  const ascending = movements.toReversed()
  return (
    <section class="section">
      <h2>Movements</h2>
      {movements.length === 0 ? (
        <p class="faint">Nothing has moved{before === null ? '' : ' before that'}.</p>
      ) : (
        <>
          {ascending.length > 1 && (
            <LineChart
              title="Available"
              times={ascending.map(({ at }) => at)}
              series={[
                { name: 'available', values: ascending.map(({ available }) => Number(available)) },
              ]}
              format={(value) => amount(String(Math.round(value)))}
              stepped
              zoomed
            />
          )}
          <DataTable
            caption="Movements, the latest first"
            rows={movements}
            keyOf={({ sequence, windowStart }) => `${windowStart ?? ''}/${sequence}`}
            columns={[
              { name: 'Number', heads: true, cell: ({ sequence }) => sequence },
              { name: 'At', cell: ({ at }) => <span class="nowrap">{moment(at)}</span> },
              { name: 'Kind', cell: ({ kind }) => kind },
              { name: 'Credit', number: true, cell: ({ credit }) => signed(credit) },
              {
                name: 'Debit',
                number: true,
                cell: ({ debit }) => (debit === '0' ? '' : `−${amount(debit)}`),
              },
              { name: 'Hold', number: true, cell: ({ hold }) => signed(hold) },
              { name: 'Available', number: true, cell: ({ available }) => amount(available) },
              { name: 'Operation', cell: ({ operationId }) => <code>{operationId}</code> },
              { name: 'Note', wideOnly: true, cell: ({ note }) => note && <code>{note}</code> },
            ]}
          />
        </>
      )}
      <nav class="pages" aria-label="Pages of movements">
        {before !== null && (
          <Link to={changed(place, { before: undefined })} class="button">
            Latest
          </Link>
        )}
        {next !== undefined && (
          <Link to={changed(place, { before: next })} class="button">
            Older
          </Link>
        )}
      </nav>
    </section>
  )
}

function Holds({ report }: { readonly report: AccountReport }): JSX.Element {
  const now = useNow()
  return (
    <section class="section">
      <h2>Holds</h2>
      {report.holds.length === 0 ? (
        <p class="faint">Nothing is reserved.</p>
      ) : (
        <DataTable
          caption="Holds of this account"
          rows={report.holds}
          keyOf={({ holdId }) => holdId}
          columns={[
            { name: 'Hold', heads: true, cell: ({ holdId }) => <code>{holdId}</code> },
            { name: 'Amount', number: true, cell: (hold) => amount(hold.amount) },
            {
              name: 'Ends',
              cell: ({ overdue, expiresAt }) =>
                overdue ? (
                  <Badge tone="bad">overdue, {relative(expiresAt, now)}</Badge>
                ) : (
                  relative(expiresAt, now)
                ),
            },
          ]}
        />
      )}
    </section>
  )
}

function Grants({ report }: { readonly report: AccountReport }): JSX.Element {
  const now = useNow()
  return (
    <section class="section">
      <h2>Grants</h2>
      {report.grants.length === 0 ? (
        <p class="faint">No credit was granted.</p>
      ) : (
        <DataTable
          caption="Grants of this account"
          rows={report.grants}
          keyOf={({ grantId }) => grantId}
          columns={[
            { name: 'Grant', heads: true, cell: ({ grantId }) => <code>{grantId}</code> },
            {
              name: 'Remaining',
              number: true,
              cell: (grant) => `${amount(grant.remaining)} of ${amount(grant.amount)}`,
            },
            { name: 'Priority', number: true, cell: ({ priority }) => priority },
            {
              name: 'Ends',
              cell: ({ expiresAt }) => (expiresAt ? relative(expiresAt, now) : 'never'),
            },
            { name: 'State', cell: ({ state }) => state },
            { name: 'For', cell: ({ onlyFor }) => onlyFor?.join(', ') ?? 'anything' },
          ]}
        />
      )}
    </section>
  )
}

const usedDays = 30

function Used(): JSX.Element {
  const { query } = usePlace()
  const database = useDatabase()
  const usage = useResource<UsageReport>(
    'usage',
    {
      database,
      book: query.get('book') ?? '',
      key: query.get('key') ?? '',
      scope: query.get('scope') ?? undefined,
      days: usedDays,
    },
    30_000,
  )
  return (
    <section class="section">
      <h2>Used in the last {usedDays} days</h2>
      <Loaded of={usage}>
        {({ rows, complete }) => (
          <>
            {!complete && (
              <p class="faint">
                Something of this time is not known: dropped, forgotten, or of a rate.
              </p>
            )}
            {rows.length === 0 ? (
              <p class="faint">Nothing was used, or it is a rate, which keeps no usage.</p>
            ) : (
              <DataTable
                caption={`Used in the last ${usedDays} days, by feature`}
                rows={rows}
                keyOf={({ feature }) => feature ?? ''}
                columns={[
                  { name: 'Feature', heads: true, cell: ({ feature }) => feature ?? '–' },
                  { name: 'Used', number: true, cell: ({ used }) => amount(used) },
                  { name: 'Refunded', number: true, cell: ({ refunded }) => amount(refunded) },
                  { name: 'Beyond the limit', number: true, cell: ({ over }) => amount(over) },
                  { name: 'Movements', number: true, cell: ({ movements }) => count(movements) },
                ]}
              />
            )}
          </>
        )}
      </Loaded>
    </section>
  )
}

/** As a shell takes it. */
function quoted(text: string): string {
  return /^[\w.:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

import type { BookSummary, ObservedHold } from 'holdfast/observe'
import type { JSX } from 'preact'
import { amount, count, length, relative } from '../../format.ts'
import { useDatabase } from '../../live/context.ts'
import { useResource } from '../../live/resource.ts'
import { AdviceList } from '../../parts/advice-list.tsx'
import { Badge } from '../../parts/badge.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loaded } from '../../parts/notice.tsx'
import { address, go, usePlace } from '../../router.ts'
import { useNow } from '../../ticker.ts'
import { Account } from './account.tsx'
import { Followers } from './followers.tsx'
import { Keys } from './keys.tsx'

/** Books, and one account with all that led to its balance. */
export function LedgerPage(): JSX.Element {
  const { query } = usePlace()
  const database = useDatabase()
  const books = useResource<{ readonly books: readonly BookSummary[] }>(
    'books',
    { database },
    15_000,
  )
  const book = query.get('book') ?? ''
  const key = query.get('key') ?? ''
  return (
    <>
      <h1 class="page-title">Ledger</h1>
      <Find books={books.data?.books ?? []} />
      {book !== '' && key !== '' ? (
        <Account key={`${book}/${key}/${query.get('scope') ?? ''}`} />
      ) : book !== '' ? (
        <Keys key={book} book={book} />
      ) : (
        <>
          <section class="section">
            <h2>Books</h2>
            <Loaded of={books}>{(data) => <Books books={data.books} />}</Loaded>
          </section>
          <Holds />
          <Followers />
        </>
      )}
    </>
  )
}

function Find({ books }: { readonly books: readonly BookSummary[] }): JSX.Element {
  const { query } = usePlace()
  const find = (event: SubmitEvent): void => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const value = (name: string): string => {
      const entry = form.get(name)
      return typeof entry === 'string' ? entry : ''
    }
    go(address('ledger', { book: value('book'), key: value('key'), scope: value('scope') }))
  }
  return (
    <form class="find" role="search" aria-label="Account" onSubmit={find}>
      <label>
        <span>Book</span>
        <input
          name="book"
          list="books"
          required
          value={query.get('book') ?? ''}
          autocomplete="off"
        />
        <datalist id="books">
          {books.map(({ book }) => (
            <option key={book} value={book} />
          ))}
        </datalist>
      </label>
      <label>
        <span>Key</span>
        <input name="key" required value={query.get('key') ?? ''} autocomplete="off" />
      </label>
      <label>
        <span>Scope, if it is not the key</span>
        <input name="scope" value={query.get('scope') ?? ''} autocomplete="off" />
      </label>
      <button type="submit" class="button button-main">
        <Icon name="search" />
        Show the account
      </button>
    </form>
  )
}

function Books({ books }: { readonly books: readonly BookSummary[] }): JSX.Element {
  if (books.length === 0) {
    return (
      <Empty icon="ledger" title="No account was opened yet.">
        <p>A book appears with the first movement on one of its accounts.</p>
      </Empty>
    )
  }
  return (
    <>
      {books.map(({ book, advice }) => (
        <AdviceList key={book} about={book} advice={advice} />
      ))}
      <DataTable
        caption="Books"
        rows={books}
        keyOf={({ book }) => book}
        columns={[
          {
            name: 'Book',
            heads: true,
            cell: ({ book }) => <Link to={address('ledger', { book })}>{book}</Link>,
          },
          {
            name: 'Accounts',
            number: true,
            cell: ({ accounts, capped }) => `${count(accounts)}${capped ? ' or more' : ''}`,
          },
          { name: 'Open holds', number: true, cell: ({ openHolds }) => count(openHolds) },
          {
            name: 'Overdue',
            number: true,
            cell: ({ overdueHolds, oldestOverdueMs }) =>
              overdueHolds === 0 ? (
                '0'
              ) : (
                <b class="trouble">
                  {count(overdueHolds)}
                  {oldestOverdueMs !== undefined && `, oldest ${length(oldestOverdueMs)}`}
                </b>
              ),
          },
        ]}
      />
    </>
  )
}

function Holds(): JSX.Element {
  const database = useDatabase()
  const now = useNow()
  const holds = useResource<{ readonly holds: readonly ObservedHold[] }>(
    'holds',
    { database, limit: 50 },
    15_000,
  )
  return (
    <section class="section">
      <h2>Open holds, those that end first</h2>
      <Loaded of={holds}>
        {(data) =>
          data.holds.length === 0 ? (
            <p class="faint">No amount is reserved.</p>
          ) : (
            <DataTable
              caption="Open holds"
              rows={data.holds}
              keyOf={({ scope, book, key, holdId }) => `${scope}/${book}/${key}/${holdId}`}
              columns={[
                { name: 'Hold', heads: true, cell: ({ holdId }) => <code>{holdId}</code> },
                {
                  name: 'Account',
                  cell: ({ book, key, scope }) => (
                    <Link to={address('ledger', { book, key, scope: scope === key ? '' : scope })}>
                      {book} <code>{key}</code>
                    </Link>
                  ),
                },
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
          )
        }
      </Loaded>
    </section>
  )
}

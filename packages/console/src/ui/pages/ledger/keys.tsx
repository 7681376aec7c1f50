import type { BookKeys } from 'holdfast/observe'
import type { JSX } from 'preact'
import { amount, relative } from '../../format.ts'
import { useDatabase } from '../../live/context.ts'
import { useResource } from '../../live/resource.ts'
import { DataTable } from '../../parts/data-table.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loaded } from '../../parts/notice.tsx'
import { address, changed, usePlace } from '../../router.ts'
import { useNow } from '../../ticker.ts'

/** The keys of a book, page by page. */
export function Keys({ book }: { readonly book: string }): JSX.Element {
  const place = usePlace()
  const database = useDatabase()
  const now = useNow()
  const after = place.query.get('after') ?? undefined
  const keys = useResource<BookKeys>('keys', { database, book, after, limit: 100 }, 15_000)
  return (
    <section class="section">
      <h2>
        Keys of <code>{book}</code>
      </h2>
      <Loaded of={keys}>
        {(data) => (
          <>
            {data.keys.length === 0 ? (
              <Empty icon="search" title="There are no keys here.">
                <p>A key appears with its first movement.</p>
              </Empty>
            ) : (
              <DataTable
                caption={`Keys of ${book}`}
                rows={data.keys}
                keyOf={({ key, scope }) => `${scope}/${key}`}
                columns={[
                  {
                    name: 'Key',
                    heads: true,
                    cell: ({ key, scope }) => (
                      <Link
                        to={address('ledger', { book, key, scope: scope === key ? '' : scope })}
                      >
                        <code>{key}</code>
                      </Link>
                    ),
                  },
                  {
                    name: 'Scope',
                    cell: ({ key, scope }) => (scope === key ? '–' : <code>{scope}</code>),
                  },
                  {
                    name: 'Available',
                    number: true,
                    cell: ({ available, due }) =>
                      due ? `${amount(available)}, something is due` : amount(available),
                  },
                  { name: 'Held', number: true, cell: ({ held }) => amount(held) },
                  { name: 'Allowance', number: true, cell: ({ allowance }) => amount(allowance) },
                  {
                    name: 'Last movement',
                    cell: ({ movedAt }) => (movedAt ? relative(movedAt, now) : '–'),
                  },
                ]}
              />
            )}
            <nav class="pages" aria-label="Pages of keys">
              <Link to={address('ledger')} class="button">
                All books
              </Link>
              {after !== undefined && (
                <Link to={changed(place, { after: undefined })} class="button">
                  First
                </Link>
              )}
              {data.next !== undefined && data.next !== '' && (
                <Link to={changed(place, { after: data.next })} class="button">
                  Next
                </Link>
              )}
            </nav>
          </>
        )}
      </Loaded>
    </section>
  )
}

import type { ObservedFollower } from 'holdfast/observe'
import type { JSX } from 'preact'
import { relative } from '../../format.ts'
import { useDatabase } from '../../live/context.ts'
import { useResource } from '../../live/resource.ts'
import { DataTable } from '../../parts/data-table.tsx'
import { Loaded } from '../../parts/notice.tsx'
import { useNow } from '../../ticker.ts'

/** Who reads movements as they come. */
export function Followers(): JSX.Element {
  const database = useDatabase()
  const now = useNow()
  const followers = useResource<{ readonly followers: readonly ObservedFollower[] }>(
    'followers',
    { database },
    15_000,
  )
  return (
    <section class="section">
      <h2>Who follows movements</h2>
      <Loaded of={followers}>
        {(data) =>
          data.followers.length === 0 ? (
            <p class="faint">Nobody does.</p>
          ) : (
            <DataTable
              caption="Who follows movements"
              rows={data.followers}
              keyOf={({ name }) => name}
              columns={[
                { name: 'Name', heads: true, cell: ({ name }) => <code>{name}</code> },
                { name: 'Book', cell: ({ book }) => book ?? 'all books' },
                { name: 'Since', cell: ({ since }) => relative(since, now) },
                {
                  name: 'Has read up to',
                  cell: ({ readUpTo }) => (readUpTo ? relative(readUpTo, now) : 'nothing yet'),
                },
              ]}
            />
          )
        }
      </Loaded>
    </section>
  )
}

import type { LockMinute, LockTotal, SeenName } from 'holdfast/observe'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { count, duration, relative } from '../../format.ts'
import { useDatabase } from '../../live/context.ts'
import { useResource } from '../../live/resource.ts'
import { LineChart } from '../../parts/chart/line-chart.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loaded } from '../../parts/notice.tsx'
import { address, changed, go, usePlace } from '../../router.ts'
import { useNow } from '../../ticker.ts'
import { everyMinute, ranked } from './namespace-totals.ts'

const spans = [
  [15, '15 min'],
  [60, '1 hour'],
  [360, '6 hours'],
  [1440, '1 day'],
] as const

interface Used {
  readonly minutes: readonly LockMinute[]
  readonly totals: readonly LockTotal[]
}

/** How locks are used, namespace by namespace, over time. */
export function LocksPage(): JSX.Element {
  const place = usePlace()
  const database = useDatabase()
  const minutes = Number(place.query.get('minutes') ?? 60)
  const used = useResource<Used>('lock-minutes', { database, minutes }, 15_000)
  return (
    <>
      <h1 class="page-title">Locks</h1>
      <div class="switch" role="group" aria-label="Time span">
        {spans.map(([value, name]) => (
          <button
            key={value}
            type="button"
            aria-pressed={value === minutes}
            onClick={() => go(changed(place, { minutes: value }), { replace: true })}
          >
            {name}
          </button>
        ))}
      </div>
      <Loaded of={used}>
        {(data) => (data.minutes.length === 0 ? <NothingRecorded /> : <Namespaces {...data} />)}
      </Loaded>
      <Names />
    </>
  )
}

const recording = `const hf = createHoldfast(driver)
const recording = hf.observe.record()`

function NothingRecorded(): JSX.Element {
  return (
    <Empty icon="locks" title="No use of locks was recorded in this time.">
      <p>
        A process counts and names its locks from the moment it records. Put this where each process
        starts. The first figures are here within a minute.
      </p>
      <div class="statement">
        <pre tabIndex={0}>
          <code>{recording}</code>
        </pre>
        <CopyButton text={recording} what="the code" />
      </div>
    </Empty>
  )
}

function Namespaces(props: Used): JSX.Element {
  const place = usePlace()
  const rows = ranked(props.totals)
  const asked = place.query.get('namespace')
  const chosen = rows.find(({ namespace }) => namespace === asked) ?? rows[0]
  return (
    <>
      <section class="section">
        <h2>Namespaces</h2>
        <DataTable
          caption="Use of locks by namespace"
          rows={rows}
          keyOf={({ namespace }) => namespace}
          columns={[
            {
              name: 'Namespace',
              heads: true,
              cell: ({ namespace }) => (
                <Link to={changed(place, { namespace })} current={namespace === chosen?.namespace}>
                  <code>{namespace}</code>
                </Link>
              ),
            },
            { name: 'Acquired', number: true, cell: ({ acquired }) => count(acquired) },
            { name: 'Timeouts', number: true, cell: ({ timeouts }) => <Trouble of={timeouts} /> },
            { name: 'Busy', number: true, cell: ({ busy }) => count(busy) },
            { name: 'Wait p50', number: true, cell: ({ wait }) => duration(wait.p50) },
            { name: 'Wait p95', number: true, cell: ({ wait }) => duration(wait.p95) },
            { name: 'Wait p99', number: true, cell: ({ wait }) => duration(wait.p99) },
            { name: 'Hold p50', number: true, cell: ({ hold }) => duration(hold.p50) },
            { name: 'Hold p95', number: true, cell: ({ hold }) => duration(hold.p95) },
            { name: 'Hold p99', number: true, cell: ({ hold }) => duration(hold.p99) },
          ]}
        />
        <p class="faint">Percentiles of all waits and holds of the time span.</p>
      </section>
      {chosen && (
        <Charts
          namespace={chosen.namespace}
          used={props.minutes.filter(({ namespace }) => namespace === chosen.namespace)}
        />
      )}
    </>
  )
}

function Trouble(props: { readonly of: number }): JSX.Element {
  return props.of === 0 ? <>0</> : <b class="trouble">{count(props.of)}</b>
}

function Charts(props: {
  readonly namespace: string
  readonly used: readonly LockMinute[]
}): JSX.Element {
  const minutes = everyMinute(props.used, Date.now())
  const times = minutes.map(({ minute }) => minute)
  const percentiles = (of: 'wait' | 'hold'): { name: string; values: (number | undefined)[] }[] =>
    (['p50', 'p95', 'p99'] as const).map((name) => ({
      name,
      values: minutes.map(({ use }) => use?.[of][name]),
    }))
  return (
    <section class="section">
      <h2>
        <code>{props.namespace}</code> over time
      </h2>
      <div class="charts">
        <LineChart
          title="Wait for the lock"
          times={times}
          series={percentiles('wait')}
          format={duration}
          finest={0.1}
          timeName="Minute"
        />
        <LineChart
          title="Hold of the lock"
          times={times}
          series={percentiles('hold')}
          format={duration}
          finest={0.1}
          timeName="Minute"
        />
        <LineChart
          title="Acquired per minute"
          times={times}
          series={[{ name: 'acquired', values: minutes.map(({ use }) => use?.acquired ?? 0) }]}
          format={count}
          timeName="Minute"
        />
        <LineChart
          title="Not got, per minute"
          times={times}
          series={[
            { name: 'timeouts', values: minutes.map(({ use }) => use?.timeouts ?? 0) },
            { name: 'busy', values: minutes.map(({ use }) => use?.busy ?? 0) },
          ]}
          format={count}
          timeName="Minute"
        />
      </div>
    </section>
  )
}

function Names(): JSX.Element {
  const database = useDatabase()
  const place = usePlace()
  const [filter, setFilter] = useState('')
  const now = useNow()
  const namespace = place.query.get('namespace') ?? undefined
  const names = useResource<{ readonly names: readonly SeenName[] }>(
    'names',
    { database, namespace, limit: 200 },
    15_000,
  )
  return (
    <section class="section">
      <header class="section-head">
        <h2>Names seen lately</h2>
        <label class="field-inline">
          <span class="unseen">Only names with</span>
          <input
            type="search"
            placeholder="Filter"
            value={filter}
            onInput={(event) => setFilter(event.currentTarget.value)}
          />
        </label>
      </header>
      <Loaded of={names}>
        {(data) => {
          const rows = data.names.filter(({ name }) => name.includes(filter))
          if (rows.length === 0) return <p class="faint">No such name was noted lately.</p>
          return (
            <DataTable
              caption="Names seen lately"
              rows={rows}
              keyOf={({ id, name }) => `${id}/${name}`}
              columns={[
                {
                  name: 'Name',
                  heads: true,
                  cell: ({ name }) => (
                    <Link to={address('now', { lock: name })}>
                      <code>{name}</code>
                    </Link>
                  ),
                },
                { name: 'Seen', cell: ({ seenAt }) => relative(seenAt, now) },
                { name: 'In pg_locks', wideOnly: true, cell: ({ id }) => <code>{id}</code> },
              ]}
            />
          )
        }}
      </Loaded>
    </section>
  )
}

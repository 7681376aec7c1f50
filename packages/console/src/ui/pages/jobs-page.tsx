import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Action, DeadJobEntry, DeadJobList, DeadJobReport } from '../../core/wire.ts'
import { moment, relative } from '../format.ts'
import { act } from '../live/api.ts'
import { useDatabase, useInfo, useMay } from '../live/context.ts'
import { useResource } from '../live/resource.ts'
import { announce } from '../parts/announcer.tsx'
import { ConfirmDialog } from '../parts/confirm-dialog.tsx'
import { DataTable } from '../parts/data-table.tsx'
import { Link } from '../parts/link.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { changed, go, usePlace } from '../router.ts'
import { useNow } from '../ticker.ts'

/** Jobs that had their last attempt, and what can be done about them. */
export function JobsPage(): JSX.Element {
  const database = useDatabase()
  const place = usePlace()
  const { query } = place
  const [queue, after] = [query.get('queue') ?? undefined, query.get('after') ?? undefined]
  const job = query.get('job') ?? undefined
  const list = useResource<DeadJobList>('jobs', { database, queue, after }, 5000)
  const onDone = (): void => {
    go(changed(place, { job: undefined }), { replace: true })
    list.reload()
  }
  return (
    <>
      <h1 class="page-title">Dead jobs</h1>
      <p class="faint">
        A job that had its last attempt stays here until somebody has it tried again or deletes it.
      </p>
      {queue !== undefined && (
        <p>
          Of the queue <code>{queue}</code>.{' '}
          <Link to={changed(place, { queue: undefined, after: undefined })}>Show all queues</Link>
        </p>
      )}
      {job !== undefined && <Job key={job} id={job} onDone={onDone} />}
      <section class="section">
        <h2>All of them</h2>
        <Loaded of={list}>{(data) => <Jobs list={data} />}</Loaded>
      </section>
    </>
  )
}

function Jobs({ list }: { readonly list: DeadJobList }): JSX.Element {
  const now = useNow()
  const place = usePlace()
  const { jobs, next } = list
  if (jobs.length === 0) {
    return (
      <Empty icon="check" title="No job is dead.">
        <p>
          A job of <code>hf.work(…)</code> is dead after its last attempt has failed; how many it
          has is said by <code>maxAttempts</code>.
        </p>
      </Empty>
    )
  }
  return (
    <>
      <DataTable
        caption="Dead jobs, the oldest of each queue first"
        rows={jobs}
        keyOf={({ id }) => id}
        columns={[
          {
            name: 'Job',
            heads: true,
            cell: ({ id }) => (
              <Link to={changed(place, { job: id })} current={place.query.get('job') === id}>
                <code>{id}</code>
              </Link>
            ),
          },
          {
            name: 'Queue',
            cell: ({ queue }) => (
              <Link to={changed(place, { queue, after: undefined, job: undefined })}>{queue}</Link>
            ),
          },
          { name: 'Scope', wideOnly: true, cell: ({ scope }) => scope },
          {
            name: 'Due',
            cell: ({ runAt }) => (
              <time dateTime={runAt} title={moment(runAt)} class="nowrap">
                {relative(runAt, now)}
              </time>
            ),
          },
          { name: 'Attempts', number: true, cell: ({ attempts }) => attempts ?? '–' },
          { name: 'Error', cell: ({ error }) => <span class="cut">{error ?? ''}</span> },
        ]}
      />
      {next !== undefined && (
        <p>
          <Link to={changed(place, { after: next, job: undefined })}>The next ones</Link>
        </p>
      )}
    </>
  )
}

function Job(props: { readonly id: string; readonly onDone: () => void }): JSX.Element {
  const database = useDatabase()
  const place = usePlace()
  const found = useResource<DeadJobReport>('job', { database, id: props.id })
  return (
    <section class="section" aria-label={`Job ${props.id}`}>
      <h2>
        Job <code>{props.id}</code>
      </h2>
      <Loaded of={found}>
        {({ job }) => (
          <>
            <dl class="facts">
              {factsOf(job).map(([name, text]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{text}</dd>
                </div>
              ))}
            </dl>
            {job.error !== undefined && (
              <>
                <h3>Error</h3>
                <pre>{job.error}</pre>
              </>
            )}
            <h3>Payload</h3>
            <pre>{job.payload}</pre>
            <JobActions job={job} onDone={props.onDone} />
          </>
        )}
      </Loaded>
      <p>
        <Link to={changed(place, { job: undefined })}>Close</Link>
      </p>
    </section>
  )
}

function factsOf(job: DeadJobEntry): [string, string][] {
  const { queue, scope, uniqueKey, attempts, maxAttempts, priority, enqueuedAt, runAt } = job
  return [
    ['Queue', queue],
    ['Scope', scope],
    ...(uniqueKey === undefined ? [] : [['Unique key', uniqueKey] as [string, string]]),
    ['Attempts', `${attempts ?? '–'} of ${maxAttempts}`],
    ['Priority', String(priority)],
    ['Added', moment(enqueuedAt)],
    ['Due last', moment(runAt)],
  ]
}

type JobAction = Extract<Action, `job-${string}`>

const questions: Readonly<
  Record<JobAction, { readonly verb: string; readonly what: string; readonly done: string }>
> = {
  'job-retry': {
    verb: 'Retry the job',
    what: 'Workers can claim it again at once, with all its attempts before it.',
    done: 'Can be claimed again',
  },
  'job-delete': {
    verb: 'Delete the job',
    what: 'It is gone for good, with its payload.',
    done: 'Deleted',
  },
}

function JobActions(props: {
  readonly job: DeadJobEntry
  readonly onDone: () => void
}): JSX.Element {
  const { id, queue } = props.job
  const info = useInfo()
  const database = useDatabase()
  const may = useMay()
  const [asking, setAsking] = useState<JobAction>()
  const offered = (['job-retry', 'job-delete'] as const).filter(may)
  if (offered.length === 0) {
    return (
      <p class="faint">
        You may look and not change it. Whoever may can run{' '}
        <code>{`holdfast jobs retry ${id}`}</code>.
      </p>
    )
  }
  const confirm = async (action: JobAction): Promise<void> => {
    await act(info, action, { job: id, confirm: id }, database)
    announce(`${questions[action].done}: job ${id}.`)
    props.onDone()
  }
  return (
    <div class="buttons">
      {offered.map((action) => (
        <button
          key={action}
          type="button"
          class={action === 'job-delete' ? 'button button-danger' : 'button'}
          onClick={() => setAsking(action)}
        >
          {questions[action].verb}…
        </button>
      ))}
      {asking && (
        <ConfirmDialog
          title={`${questions[asking].verb}?`}
          verb={questions[asking].verb}
          onConfirm={() => confirm(asking)}
          onClose={() => setAsking(undefined)}
        >
          <p>
            <code>{id}</code> of the queue <code>{queue}</code>. {questions[asking].what}
          </p>
          <p>This is written to the audit log, with your name.</p>
        </ConfirmDialog>
      )}
    </div>
  )
}

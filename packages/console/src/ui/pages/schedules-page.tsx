import type { ObservedSchedule, ObservedTick } from 'holdfast/observe'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Action } from '../../core/wire.ts'
import { clock, length, moment, plural, relative } from '../format.ts'
import { act } from '../live/api.ts'
import { useDatabase, useInfo, useMay } from '../live/context.ts'
import { useResource } from '../live/resource.ts'
import { AdviceList } from '../parts/advice-list.tsx'
import { announce } from '../parts/announcer.tsx'
import { Badge, Mark } from '../parts/badge.tsx'
import type { Tone } from '../parts/tone.ts'
import { ConfirmDialog } from '../parts/confirm-dialog.tsx'
import { DataTable } from '../parts/data-table.tsx'
import { Icon, type IconName } from '../parts/icon.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { useNow } from '../ticker.ts'

/** Schedules: what ran, what runs, what did not and why. */
export function SchedulesPage(): JSX.Element {
  const database = useDatabase()
  const schedules = useResource<{ readonly schedules: readonly ObservedSchedule[] }>(
    'schedules',
    { database, ticks: 30 },
    5000,
  )
  return (
    <>
      <h1 class="page-title">Schedules</h1>
      <Loaded of={schedules}>
        {(data) =>
          data.schedules.length === 0 ? (
            <Empty icon="schedules" title="No schedule has ticked yet.">
              <p>
                A schedule appears here with its first tick, or once somebody starts it:{' '}
                <code>hf.schedule(…).start()</code>.
              </p>
            </Empty>
          ) : (
            data.schedules.map((schedule) => (
              <Schedule key={schedule.name} schedule={schedule} onDone={schedules.reload} />
            ))
          )
        }
      </Loaded>
    </>
  )
}

function Schedule(props: {
  readonly schedule: ObservedSchedule
  readonly onDone: () => void
}): JSX.Element {
  const { schedule } = props
  const now = useNow()
  return (
    <section class="section schedule" aria-label={schedule.name}>
      <header class="section-head">
        <h2>
          <code>{schedule.name}</code>
        </h2>
        <StateOf schedule={schedule} />
        <Actions schedule={schedule} onDone={props.onDone} />
      </header>
      <dl class="facts facts-row">
        {schedule.rule !== undefined && <Fact name="Rule" value={schedule.rule} />}
        <Fact
          name="Last tick"
          value={
            schedule.lastTick
              ? `${moment(schedule.lastTick)}, ${relative(schedule.lastTick, now)}`
              : 'none yet'
          }
        />
        <Fact
          name="Next"
          value={
            schedule.paused
              ? 'paused'
              : schedule.next
                ? `${moment(schedule.next)}, ${relative(schedule.next, now)}`
                : 'not known here'
          }
        />
      </dl>
      <AdviceList advice={schedule.advice} />
      <Ticks schedule={schedule} />
    </section>
  )
}

function Fact(props: { readonly name: string; readonly value: string }): JSX.Element {
  return (
    <div>
      <dt>{props.name}</dt>
      <dd>{props.value}</dd>
    </div>
  )
}

function StateOf({ schedule }: { readonly schedule: ObservedSchedule }): JSX.Element {
  if (schedule.paused) return <Badge tone="wait">paused</Badge>
  if (schedule.lateMs !== undefined)
    return <Badge tone="bad">late by {length(schedule.lateMs)}</Badge>
  if (schedule.waiting > 0) {
    return <Badge tone="wait">{plural(schedule.waiting, 'tick')} to be tried again</Badge>
  }
  if (schedule.running > 0) return <Badge tone="info">{schedule.running} running</Badge>
  return <Badge tone="good">on time</Badge>
}

const tones: Readonly<Record<string, Tone>> = {
  running: 'info',
  waiting: 'wait',
  done: 'good',
  failed: 'bad',
  lost: 'bad',
  skipped: 'plain',
}

/** Why a tick is as it is, in words. */
function reason(tick: ObservedTick): string {
  switch (tick.state) {
    case 'skipped':
      return tick.missed === undefined || tick.missed === 0
        ? 'skipped: the one before it was still running'
        : `skipped, with ${plural(tick.missed, 'tick')} missed before it`
    case 'lost':
      return 'lost: whoever ran it went away'
    case 'waiting':
      return `failed, tries again: ${tick.error ?? ''}`
    case 'failed':
      return `failed: ${tick.error ?? 'no reason was given'}`
    default:
      return tick.state
  }
}

function Ticks({ schedule }: { readonly schedule: ObservedSchedule }): JSX.Element | null {
  const ticks = schedule.ticks.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at))
  if (ticks.length === 0) return null
  return (
    <>
      <ol class="ticks" aria-label={`Ticks of ${schedule.name}, the oldest first`}>
        {ticks.map((tick) => (
          <li
            key={`${tick.at}/${tick.manual}`}
            class={`tick-box tick-${tick.state}`}
            title={`${moment(tick.at)} ${reason(tick)}`}
          >
            <Mark tone={tones[tick.state] ?? 'plain'} />
            <span class="tick-time">{clock(tick.at, false)}</span>
            <span class="unseen"> {reason(tick)}</span>
          </li>
        ))}
      </ol>
      <details class="chart-table">
        <summary>
          All ticks<span class="unseen"> of {schedule.name}</span>
        </summary>
        <DataTable
          caption={`Ticks of ${schedule.name}, the latest first`}
          rows={ticks.toReversed()}
          keyOf={({ at, manual }) => `${at}/${manual}`}
          columns={[
            { name: 'At', heads: true, cell: ({ at }) => <span class="nowrap">{moment(at)}</span> },
            {
              name: 'What became of it',
              cell: (tick) => <Badge tone={tones[tick.state] ?? 'plain'}>{reason(tick)}</Badge>,
            },
            { name: 'Asked for by hand', cell: ({ manual }) => (manual ? 'yes' : '') },
            { name: 'Attempt', number: true, cell: ({ attempt }) => attempt },
            { name: 'Took', number: true, cell: took },
            { name: 'By', wideOnly: true, cell: ({ holder }) => holder ?? '' },
          ]}
        />
      </details>
    </>
  )
}

function took({ startedAt, finishedAt }: ObservedTick): string {
  if (startedAt === undefined || finishedAt === undefined) return '–'
  return length(Date.parse(finishedAt) - Date.parse(startedAt))
}

type ScheduleAction = Extract<Action, `schedule-${string}`>

const questions: Readonly<
  Record<
    ScheduleAction,
    { readonly verb: string; readonly icon: IconName; readonly what: string; readonly done: string }
  >
> = {
  'schedule-pause': {
    verb: 'Pause',
    icon: 'pause',
    what: 'No further tick is started, in any process, until somebody resumes it. What runs goes on.',
    done: 'Paused',
  },
  'schedule-resume': {
    verb: 'Resume',
    icon: 'play',
    what: 'Ticks are started again from the next one on. What was missed follows the schedule’s own rule.',
    done: 'Resumed',
  },
  'schedule-run': {
    verb: 'Run now',
    icon: 'play',
    what: 'One tick more is asked for; a process that runs this schedule takes it.',
    done: 'Asked for a tick of',
  },
}

function Actions(props: {
  readonly schedule: ObservedSchedule
  readonly onDone: () => void
}): JSX.Element | null {
  const { schedule } = props
  const info = useInfo()
  const database = useDatabase()
  const may = useMay()
  const [asking, setAsking] = useState<ScheduleAction>()
  const offered = (
    ['schedule-run', schedule.paused ? 'schedule-resume' : 'schedule-pause'] as const
  ).filter(may)
  if (offered.length === 0) return null

  const confirm = async (action: ScheduleAction): Promise<void> => {
    const done = await act(
      info,
      action,
      { schedule: schedule.name, confirm: schedule.name },
      database,
    )
    announce(done ? `${questions[action].done} ${schedule.name}.` : 'That was so already.')
    props.onDone()
  }
  return (
    <div class="buttons">
      {offered.map((action) => (
        <button
          key={action}
          type="button"
          class="button button-small"
          onClick={() => setAsking(action)}
        >
          <Icon name={questions[action].icon} />
          {questions[action].verb}…<span class="unseen"> {schedule.name}</span>
        </button>
      ))}
      {asking && (
        <ConfirmDialog
          title={`${questions[asking].verb}: ${schedule.name}?`}
          verb={questions[asking].verb}
          onConfirm={() => confirm(asking)}
          onClose={() => setAsking(undefined)}
        >
          <p>{questions[asking].what}</p>
          <p>This is written to the audit log, with your name.</p>
        </ConfirmDialog>
      )}
    </div>
  )
}

import { isOccupied } from './lane.ts'
import {
  connectionsOf,
  connectionsOfFlow,
  nameOf,
  note,
  type Performer,
  type Play,
  userOf,
} from './play.ts'
import { settle } from './settle.ts'
import { sharedConnections } from '../connection/shared-connections.ts'
import { drain } from './signal.ts'

/** Waits until every flow waits for us, for another flow, or for something that we do not control. */
export async function rest(play: Play): Promise<void> {
  while (!play.trouble) {
    await settle(play)
    if (play.trouble) return
    const moving = play.performers.filter((_, flow) => !isAtRest(play, flow))
    if (moving.length === 0 && !isLeaving(play)) {
      const before = play.activity
      await drain()
      const underWay = play.lanes.some(({ status }) => status === 'running' || status === 'settled')
      if (play.activity === before && !underWay && play.returns.length === 0) return
      continue
    }
    if (await isQuiet(play)) for (const performer of moving) declareIdle(play, performer)
  }
}

/**
 * Whether nothing is seen for the time of grace. Only slices that took about as long as they should
 * count: a process that is kept from running has not been idle.
 */
async function isQuiet(play: Play): Promise<boolean> {
  const slices = 5
  const slice = play.setting.graceMs / slices
  for (let counted = 0; counted < slices; ) {
    const start = performance.now()
    if (await play.signal.wait(slice)) return false
    if (performance.now() - start < slice * 2 + 5) counted += 1
  }
  return true
}

function isAtRest(play: Play, flow: number): boolean {
  const performer = play.performers[flow]
  if (!performer?.performance || performer.idle) return true
  if (performer.outcome && !goesOn(play, flow)) return true
  return (
    !isConnecting(play, flow) && play.lanes.some((lane) => lane.flow === flow && isOccupied(lane))
  )
}

/** A flow that has ended and still has something under way: what it did not await belongs to it as well. */
function goesOn(play: Play, flow: number): boolean {
  const { outcome } = play.performers[flow] ?? {}
  const wing = play.setting.stage.wings[flow]
  if (!wing || outcome?.kind === 'crashed') return false
  const { pool } = wing
  const inUse = pool.totalCount !== pool.idleCount || pool.waitingCount > 0
  const open = connectionsOfFlow(play, flow).some(
    ({ phase, state }) => phase === 'starting' || (phase === 'idle' && state !== 'I'),
  )
  return inUse || open
}

function isConnecting(play: Play, flow: number): boolean {
  const own = play.setting.stage.wings[flow]?.connections ?? []
  // Nobody knows yet who will use a shared one.
  return [...own, ...sharedConnections].some(({ phase }) => phase === 'starting')
}

/** A session with a transaction or with locks of its own was left: until the server has ended it, they are there. */
function isLeaving(play: Play): boolean {
  return connectionsOf(play).some((connection) => {
    const user = userOf(play, connection)
    // One that waits for a lock does not notice that it was left.
    if (user?.status === 'running' || user?.status === 'blocked') return false
    const holds = connection.state !== 'I' || (user?.record.sessionKeys.size ?? 0) > 0
    return connection.phase === 'closing' && holds
  })
}

/** How long a flow that waits for nobody knows what is waited for, the first time it does so at this place. */
const unknownMs = 250

function declareIdle(play: Play, performer: Performer): void {
  const { graceMs, hangMs, stage, meetings } = play.setting
  const now = performance.now()
  const { flow } = performer.identity
  const name = nameOf(play, flow)
  const place = placeOf(play, flow)
  const known = isConnecting(play, flow)
    ? 'a connection'
    : performer.outcome
      ? undefined
      : play.elsewhere.waits(performer.identity)
  // What follows a wait that is over has its own time: its next statement is on its way.
  if (known !== undefined) performer.waited = now
  // What has ended is not waited for once more: it may have left something open.
  const ended = performer.outcome !== undefined && known === undefined
  const limit = ended
    ? 0
    : known !== undefined || play.serial
      ? hangMs
      : meetings.has(place)
        ? graceMs / 2
        : unknownMs
  const since = known === undefined ? Math.max(performer.seen, performer.waited) : performer.seen
  if (now - since < limit) return
  const what = `${name} waited for ${known ?? 'something other than SQL'} for more than ${Math.round(limit)} ms; the others went on meanwhile. Orders that depend on it are not explored.`
  performer.idle = { since: now, place, what }
  if ((stage.wings[flow]?.pool.waitingCount ?? 0) > 0)
    note(
      play,
      'uncontrolled-wait',
      `${name} waited for a connection of its pool: the pool is too small for what it does at once.`,
    )
}

/** Where in its code a flow is, as far as can be seen from outside: equal in runs that did the same so far. */
function placeOf(play: Play, flow: number): string {
  const last = play.steps.findLast((step) => step.flow === flow)
  const count = play.steps.filter((step) => step.flow === flow).length
  return `${flow} ${count} ${last?.statements.join(';') ?? ''}`
}

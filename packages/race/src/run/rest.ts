import { isOccupied } from './lane.ts'
import { connectionsOf, nameOf, note, type Performer, type Play, userOf } from './play.ts'
import { settle } from './settle.ts'
import { sharedConnections } from './shared-connections.ts'
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
  if (!performer || performer.idle || performer.outcome !== undefined) return true
  return (
    !isConnecting(play, flow) && play.lanes.some((lane) => lane.flow === flow && isOccupied(lane))
  )
}

function isConnecting(play: Play, flow: number): boolean {
  const own = play.setting.stage.wings[flow]?.connections ?? []
  // Nobody knows yet who will use a shared one.
  return [...own, ...sharedConnections].some(({ phase }) => phase === 'starting')
}

/** A session with a transaction was left: until the server has ended it, its locks are there. */
function isLeaving(play: Play): boolean {
  return connectionsOf(play).some((connection) => {
    const status = userOf(play, connection)?.status
    // One that waits for a lock does not notice that it was left.
    if (status === 'running' || status === 'blocked') return false
    return connection.phase === 'closing' && connection.state !== 'I'
  })
}

function declareIdle(play: Play, performer: Performer): void {
  const { graceMs, hangMs, stage } = play.setting
  const quiet = performance.now() - performer.seen
  const { flow } = performer.identity
  const patient = isConnecting(play, flow) || play.timers.pauses(performer.identity)
  if (quiet < (patient ? hangMs : graceMs / 2)) return
  performer.idle = true
  const name = nameOf(play, flow)
  const waiting = stage.wings[flow]?.pool.waitingCount ?? 0
  note(
    play,
    'uncontrolled-wait',
    waiting > 0
      ? `${name} waited for a connection of its pool: the pool is too small for what it does at once.`
      : `${name} waited for something other than SQL for more than ${graceMs} ms; the others went ` +
          'on meanwhile. Orders that depend on it are not explored.',
  )
}

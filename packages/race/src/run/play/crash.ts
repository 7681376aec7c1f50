import { connectionsOfFlow, type Play, seen } from './play.ts'

/** Ends a flow as the death of its process would: nothing it does from now on is heard. */
export async function crash(play: Play, flow: number): Promise<void> {
  const performer = play.performers[flow]
  if (!performer) return
  const { control, hangMs } = play.setting
  performer.outcome = { kind: 'crashed' }
  performer.identity.over = true
  const open = connectionsOfFlow(play, flow)
  play.frozen.push(...open.map((connection) => ({ connection, flow })))
  for (const connection of open) {
    connection.freeze()
    connection.hangUp()
  }
  // A session that waits for a lock does not notice that its client is gone.
  const waiting = play.lanes.filter((lane) => lane.flow === flow && lane.status === 'blocked')
  await control.terminate(waiting.map((lane) => lane.connection?.pid ?? 0))
  for (const lane of play.lanes) {
    if (lane.flow !== flow) continue
    lane.status = 'closed'
    lane.record.clear()
  }
  const deadline = performance.now() + hangMs
  while (open.some(({ phase }) => phase !== 'closed') && performance.now() < deadline) {
    await play.signal.wait(10)
  }
  play.stale = true
  seen(play, flow)
}

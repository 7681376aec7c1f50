import { type Actor, newId, type Stage } from '../crew/actor.ts'
import type { Answer } from '../crew/recorder.ts'
import { lockKey } from '../../packages/holdfast/src/index.ts'
import { seatsPerRoom } from './guard-room.ts'

const slotMs = 300
const rooms = 2

/** Check, then insert, in a table of the user's: right only under the lock. */
export const guardActor: Actor = {
  workload: 'guard',
  copies: 1,
  async act(stage) {
    const { random, stopping } = stage
    while (!stopping.aborted) {
      const room = `room-${stage.slot(slotMs)}-${random.integer(1, rooms)}`
      const id = newId(stage)
      const again = random.integer(0, 9) === 0
      const call = () => takeSeat(stage, room, id)
      const asked = { operation: 'sit', key: room, id }
      const { outcome } = await stage.recorder.persist(asked, call)
      if (again && outcome === 'ok') await stage.recorder.persist(asked, call)
      await stage.pace()
    }
  },
}

/** Looks for its own row first, as everybody has to who may come a second time. */
async function takeSeat<Tx>(stage: Stage<Tx>, room: string, id: string): Promise<Answer> {
  const { app, without } = stage
  const body = async (tx: Tx): Promise<Answer> => {
    const seats = await app.query(tx, 'SELECT id FROM seat WHERE room = $1::text', [room])
    if (seats.some((seat) => seat['id'] === id)) return { outcome: 'ok', value: { replayed: true } }
    if (seats.length >= seatsPerRoom) return { outcome: 'refused', value: { taken: seats.length } }
    await app.query(tx, 'INSERT INTO seat (room, id) VALUES ($1::text, $2::text)', [room, id])
    return { outcome: 'ok', value: { replayed: false } }
  }
  // What is found may not be on the standby yet, and a commit that only read does not wait for it.
  const options = { durable: true }
  if (without.has('guard')) return await app.hf.transaction(body, options)
  return await app.hf.guard(lockKey('room', room), body, options)
}

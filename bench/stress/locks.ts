import { startEngine } from '../engines/engine.ts'
import { rounds, seconds as lasting } from '../harness/budget.ts'
import type { StressScenario } from '../harness/stress-scenario.ts'
import { oppositeOrders } from './opposite-orders.ts'
import { roomForOne } from './room-for-one.ts'

/** Shares of `--seconds`; the rest is for starting the server and for the controls. */
const roomShare = 0.45
const orderShare = 0.35

export const locks: StressScenario = {
  about: 'room for one with many takers, and many keys in opposite orders',
  engines: ['postgres', 'mariadb', 'mysql'],
  async run({ engine, seconds, seed, progress }) {
    progress(`starting ${engine}`)
    // Deadlocks of the control are to be found at once.
    await using server = await startEngine(engine, { deadlockMs: 20 })
    const room = await roomForOne({
      url: await server.createDatabase('room'),
      seed,
      budget: seconds === undefined ? rounds(200) : lasting(seconds * roomShare),
      progress,
    })
    const orders = await oppositeOrders({
      server,
      seed,
      budget: seconds === undefined ? rounds(10_000) : lasting(seconds * orderShare),
      progress,
    })
    return {
      operations: room.operations + orders.operations,
      violations: [...room.violations, ...orders.violations],
      controls: { ...room.controls, ...orders.controls },
      notes: [...room.notes, ...orders.notes],
    }
  },
}

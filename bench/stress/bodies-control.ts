/** The program of one control: the hunt, in a process whose library lacks a protection; see bodies.ts. */
import { hunt } from './bodies-hunt.ts'
import type { ControlOrder, ControlReport } from './bodies.ts'

process.once('message', (order: ControlOrder) => {
  void (async () => {
    const { servers, seed, count, sorts } = order
    const { bodies, findings } = await hunt(servers, {
      seed,
      count,
      seconds: undefined,
      stopAt: sorts,
      progress: () => undefined,
    })
    const report: ControlReport = { bodies, finding: findings[0] }
    process.send?.(report, () => process.exit(0))
  })()
})

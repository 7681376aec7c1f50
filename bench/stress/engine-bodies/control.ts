/** The program of one control: the hunt, in a process whose library lacks a protection; see scenario.ts. */
import { hunt } from './hunt.ts'
import { innodbGround } from './innodb-ground.ts'
import type { ControlOrder, ControlReport } from './scenario.ts'
import { sqliteGround } from './sqlite-ground.ts'

process.once('message', (order: ControlOrder) => {
  void (async () => {
    const { innodb, seed, count, sorts } = order
    const ground = innodb === undefined ? await sqliteGround() : innodbGround(innodb)
    const { bodies, findings } = await hunt(ground, {
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

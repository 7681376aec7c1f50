/** The program of one control: the attack, in a process whose library lacks a protection; see hostile.ts. */
import { attack, type AttackOrder } from './hostile-attack.ts'

process.once('message', (order: AttackOrder) => {
  void (async () => {
    const report = await attack(order, () => undefined)
    process.send?.(report, () => process.exit(0))
  })()
})

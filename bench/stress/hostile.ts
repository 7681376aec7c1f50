import { startPostgres } from '@holdfast/testkit'
import type { ControlOutcome, StressScenario } from '../harness/stress-scenario.ts'
import { askWeakened } from '../harness/weakened-process.ts'
import { type Attacked, attack, type AttackOrder } from './hostile-attack.ts'
import { type HostileControl, hostileControls, isHostileControl } from './hostile-cuts.ts'

const fullCount = 100_000
/** A control that has found nothing by then is missed. */
const controlCount = 20_000
/** Of `--seconds`; the rest is for starting and for the controls. */
const share = 0.4

export const hostile: StressScenario = {
  about:
    'generated names, keys, payloads and settings through every way in: nothing is more than data',
  controls: hostileControls,
  async run({ seconds, seed, count, control, progress }) {
    progress('starting PostgreSQL')
    await using server = await startPostgres({ settings: { statement_timeout: '20s' } })
    const order = async (name: string): Promise<AttackOrder> => ({
      url: await server.createDatabase(name),
      seed,
      count: count ?? (seconds === undefined ? fullCount : Infinity),
      seconds: seconds === undefined ? undefined : seconds * share,
      first: false,
    })
    const only = control !== undefined && isHostileControl(control) ? control : undefined
    const found: Attacked =
      only === undefined
        ? await attack(await order('hostile'), progress)
        : { calls: 0, wrong: [], coverage: {} }
    const controls: Record<string, ControlOutcome> = {}
    const notes: string[] = [`${found.calls} calls`]
    for (const name of only === undefined ? hostileControls : [only]) {
      const brief = { ...(await order(name)), count: controlCount, seconds: undefined, first: true }
      const { calls, wrong } = await without(name, brief)
      controls[name] = wrong.length > 0 ? 'caught' : 'missed'
      notes.push(`${name}: after ${calls} calls: ${wrong[0] ?? 'nothing'}`)
      progress(`control ${name}: ${controls[name]}`)
    }
    return {
      operations: found.calls,
      violations: found.wrong,
      controls,
      notes,
      coverage: found.coverage,
    }
  },
}

/** The same attack in another process, whose library lacks a protection, until something is found. */
async function without(name: HostileControl, order: AttackOrder): Promise<Attacked> {
  return await askWeakened<Attacked>(
    {
      program: new URL('./hostile-control.ts', import.meta.url),
      cutting: new URL('./hostile-weakened.ts', import.meta.url),
      env: { HOSTILE_WITHOUT: name },
    },
    order,
  )
}

import { setTimeout as pause } from 'node:timers/promises'
import { waitUntil } from '@holdfast/testkit'
import { startEngine } from '../engines/engine.ts'
import { startMortalCrew } from '../harness/mortal-crew.ts'
import { randomFor } from '../harness/random.ts'
import type { StressScenario } from '../harness/stress-scenario.ts'
import { everyMs, type InstanceSetup } from './schedule-setup.ts'
import { openScheduleStore, type ScheduleStore } from './schedule-store.ts'

/** By how much the clocks of the five are wrong. Two of them hardly differ, as with NTP. */
const skewsMs = [-30_000, -12_000, 0, 800, 30_000]
const fullTicks = 1_000
/** Of `--seconds`; the rest is for starting, for what has to be settled after, and for the control. */
const ticksShare = 0.5
const killEveryMs = { least: 400, most: 1_600 }
const controlLimitMs = 60_000
const guarantees = ['transactional', 'at-least-once', 'at-most-once'] as const

export const schedule: StressScenario = {
  about: `a tick every ${everyMs} ms in five processes with clocks wrong by up to 30 s, timers late by up to 500 ms, some killed`,
  engines: ['postgres', 'mariadb', 'mysql'],
  async run({ engine, seconds, seed, progress }) {
    progress(`starting ${engine}`)
    await using server = await startEngine(engine)
    const url = await server.createDatabase('schedule')
    await using store = await openScheduleStore(url, 1)
    await store.prepare()
    const enough = (done: number, sinceMs: number): boolean =>
      seconds === undefined ? done >= fullTicks : sinceMs >= seconds * ticksShare * 1_000
    const { killed, untilMs } = await runSchedules(store, url, enough, seed, progress)
    const { violations, notes, operations } = await judge(store, untilMs)
    const doubled = await runControl(store, url)
    return {
      operations,
      violations,
      controls: { try_lock: doubled > 0 ? 'caught' : 'missed' },
      notes: [
        `${killed} processes were killed`,
        ...notes,
        `with a lock that is only tried: ${doubled} ticks ran more than once`,
      ],
    }
  },
}

async function runSchedules(
  store: ScheduleStore<unknown>,
  url: string,
  enough: (done: number, sinceMs: number) => boolean,
  seed: number,
  progress: (text: string) => void,
): Promise<{ readonly killed: number; readonly untilMs: number }> {
  const setup: InstanceSetup = { url, control: false, skewsMs }
  await using crew = await startMortalCrew(
    new URL('./schedule-instance.ts', import.meta.url),
    skewsMs.length,
    setup,
  )
  const beganMs = performance.now()
  for (let at = 0, shown = 0; ; at += 1) {
    const random = randomFor(seed, at)
    await pause(random.integer(killEveryMs.least, killEveryMs.most))
    const done = (await store.effects()).filter(({ name }) => name === 'transactional').length
    if (enough(done, performance.now() - beganMs)) break
    if (done - shown >= 100) {
      shown = done
      progress(`${done} ticks, ${crew.killed} processes killed`)
    }
    await crew.killOne(random.integer(0, skewsMs.length - 1))
  }
  // From here on nobody is killed: what is owed up to this moment has to be settled.
  const untilMs = await store.nowMs()
  const settled = async (): Promise<true | undefined> =>
    (await store.isSettled(untilMs)) ? true : undefined
  await waitUntil('everything is settled', settled, { limitMs: 60_000, everyMs: 100 })
  return { killed: crew.killed, untilMs }
}

/** Every tick between the first that ran and the end, whether or not anything was left of it. */
async function judge(
  store: ScheduleStore<unknown>,
  untilMs: number,
): Promise<{ violations: string[]; notes: string[]; operations: number }> {
  const effects = await store.effects()
  const violations: string[] = []
  const notes: string[] = []
  let operations = 0
  for (const name of guarantees) {
    const runs = new Map(
      effects
        .filter((each) => each.name === name)
        .map((each) => [Math.round(each.atMs), each.runs]),
    )
    if (runs.size === 0) violations.push(`${name} was not tried`)
    let [ticks, none, more] = [0, 0, 0]
    for (let at = Math.min(...runs.keys()); at <= untilMs; at += everyMs) {
      const found = runs.get(at) ?? 0
      ticks += 1
      if (found === 0) none += 1
      if (found > 1) more += 1
    }
    operations += ticks
    notes.push(`${name}: ${ticks} ticks, ${none} without effect, ${more} with more than one`)
    if (name !== 'at-most-once' && none > 0) violations.push(`${name}: ${none} ticks did not run`)
    if (name !== 'at-least-once' && more > 0) violations.push(`${name}: ${more} ticks ran twice`)
  }
  return { violations, notes, operations }
}

async function runControl(store: ScheduleStore<unknown>, url: string): Promise<number> {
  const setup: InstanceSetup = { url, control: true, skewsMs }
  await using _crew = await startMortalCrew(
    new URL('./schedule-instance.ts', import.meta.url),
    skewsMs.length,
    setup,
  )
  const untilMs = performance.now() + controlLimitMs
  for (;;) {
    await pause(500)
    const twice = (await store.effects()).filter(
      ({ name, runs }) => name === 'try_lock' && runs > 1,
    )
    if (twice.length > 0 || performance.now() > untilMs) return twice.length
  }
}

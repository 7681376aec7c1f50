import { cpus } from 'node:os'
import { setTimeout as after } from 'node:timers/promises'
import type { Applications } from './shards-crew.ts'

/** What others kept of their throughput while something was done. */
export interface Kept {
  readonly ratio: number
  /** How much of the machine's processors was used in the time without. */
  readonly quietlyBusy: number
}

interface Look {
  readonly done: number
  readonly at: number
  readonly used: number
  readonly all: number
}

const quietMs = 1_500

/** Operations per second on buckets that stay, during the act and in a time before or after it. */
export async function keptDuring(
  applications: Applications,
  quietAfterwards: boolean,
  act: () => Promise<unknown>,
): Promise<Kept> {
  const first = await look(applications)
  await (quietAfterwards ? act() : after(quietMs))
  const second = await look(applications)
  await (quietAfterwards ? after(quietMs) : act())
  const third = await look(applications)
  const [during, quiet] = quietAfterwards
    ? [between(first, second), between(second, third)]
    : [between(second, third), between(first, second)]
  return { ratio: during.rate / quiet.rate, quietlyBusy: quiet.busy }
}

const [tuneMs, tuneSteps] = [750, 4]
const closeEnough = 0.04

/** Makes them work at a pace that takes about this share of the machine's processors, however fast these are. */
export async function takeShare(applications: Applications, share: number): Promise<void> {
  let thinkMs = 20
  for (let step = 0; step < tuneSteps; step += 1) {
    await applications.pace(thinkMs)
    const before = await look(applications)
    await after(tuneMs)
    const { busy } = between(before, await look(applications))
    if (Math.abs(busy - share) < closeEnough) return
    thinkMs = Math.min(500, Math.max(1, Math.round((thinkMs * busy) / share)))
  }
  await applications.pace(thinkMs)
}

async function look(applications: Applications): Promise<Look> {
  const done = await applications.done()
  const times = cpus().map((each) => each.times)
  const all = times.flatMap((each) => Object.values(each)).reduce((sum, ms) => sum + ms, 0)
  const idle = times.reduce((sum, each) => sum + each.idle, 0)
  return { done, at: performance.now(), used: all - idle, all }
}

function between(from: Look, to: Look): { readonly rate: number; readonly busy: number } {
  return {
    rate: (to.done - from.done) / (to.at - from.at),
    busy: (to.used - from.used) / (to.all - from.all),
  }
}

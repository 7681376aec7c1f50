import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { processorSeconds, secondsOf, secondsOfEachThread } from './processor-seconds.ts'

/** Who takes part in a contest; what they have used of a processor, in seconds so far. */
export interface Meter {
  readonly parts: Readonly<Record<string, () => number>>
}

interface Servers {
  /** PostgreSQL, each session a process. */
  readonly postmaster?: number
  /** MariaDB or MySQL, each session a thread. */
  readonly threads?: number
  readonly pooler?: number
  readonly redis?: number | undefined
}

/** `undefined` where the system does not tell. */
export function meterOf({ postmaster, threads, pooler, redis }: Servers): Meter | undefined {
  const parts: Record<string, () => number> = { client: secondsOfClient }
  if (postmaster !== undefined) {
    const spent = processorSeconds(postmaster)
    if (spent === undefined) return undefined
    parts['server'] = () => spent.server()
  }
  if (threads !== undefined) {
    if (secondsOfEachThread(threads) === undefined) return undefined
    parts['server'] = () => secondsOfEachThread(threads) ?? 0
  }
  // Each of its threads: what it does beside the commands costs a processor as well.
  if (redis !== undefined) parts['redis'] = () => secondsOfEachThread(redis) ?? 0
  if (pooler !== undefined) parts['pooler'] = () => secondsOf(pooler) ?? 0
  return machineSeconds() === undefined ? undefined : { parts }
}

/** This process, and those that it has started and waited for: pgbench. */
function secondsOfClient(): number {
  const { user, system } = process.cpuUsage()
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const [ofEnded, inKernel] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(13, 15)
  return (user + system) / 1e6 + (Number(ofEnded) + Number(inKernel)) / 100
}

/** What an operation costs, and what others did meanwhile. */
export interface Cost {
  /** Microseconds of a processor for one operation, by who has used them. */
  readonly parts: Readonly<Record<string, number>>
  /** All of them. */
  readonly total: number
  /** The part of the machine that was used by nobody who takes part. */
  readonly others: number
}

/** Begins to measure; what is returned ends it, with the number of operations. */
export function startCost({ parts }: Meter): (operations: number) => Cost {
  const read = (): [string, number][] =>
    Object.entries(parts).map(([name, seconds]) => [name, seconds()])
  const before = new Map(read())
  const machineBefore = machineSeconds() ?? 0
  const began = performance.now()
  return (operations) => {
    const seconds = (performance.now() - began) / 1_000
    const spent = read().map(([name, after]) => [name, after - (before.get(name) ?? 0)] as const)
    const ours = spent.reduce((sum, [, each]) => sum + each, 0)
    const all = (machineSeconds() ?? 0) - machineBefore
    return {
      parts: Object.fromEntries(spent.map(([name, each]) => [name, (each * 1e6) / operations])),
      total: (ours * 1e6) / operations,
      others: Math.max(0, all - ours) / (seconds * availableParallelism()),
    }
  }
}

/** What all processors together have worked, and what a host has taken from them. */
function machineSeconds(): number | undefined {
  try {
    const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1)
    const [user = 0, nice = 0, system = 0, , , irq = 0, soft = 0, stolen = 0] = line
      .trim()
      .split(/\s+/)
      .slice(1)
      .map(Number)
    return (user + nice + system + irq + soft + stolen) / 100
  } catch {
    return undefined
  }
}

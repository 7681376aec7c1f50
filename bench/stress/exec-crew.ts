import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as after } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { sendSignal } from '@holdfast/testkit'
import type { Budget } from '../harness/budget.ts'
import { type Random, randomFor } from '../harness/random.ts'

const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))
const childProgram = fileURLToPath(new URL('./exec-child.ts', import.meta.url))
const fromSource = new URL('../../packages/holdfast/test/support/from-source.ts', import.meta.url)

/** Where they all work. */
export interface Grounds {
  readonly url: string
  /** What the children write. */
  readonly log: string
  readonly port: number
  /** What the guardian loads first, to lack its protection; then only holders are killed, under commands that last. */
  readonly cutting?: URL
  /** Who still waits when the time is up is told to end. */
  readonly hurry?: boolean
  /** Without `holdfast exec` around it. */
  readonly bare?: boolean
}

/** One command that was started, and what is to come of it. */
interface Started {
  readonly process: ChildProcess
  readonly wanted: number
  /** Somebody was hurt, so its exit code may be another. */
  hurt: boolean
}

const [ttlSeconds, graceSeconds] = [4, 0.5]
/** What is hurt, and how. */
const attacks = ['holder', 'child', 'guardian', 'holder and child', 'stop', 'connections'] as const
export type Attack = (typeof attacks)[number]

/** `holdfast exec` says so if it had to end the command. */
const lostCode = 76

export interface Outcome {
  /** To the exit code they were to have. */
  readonly ran: number
  /** Ended though nobody hurt them: the machine was too busy to renew the lease, and that was told. */
  readonly lost: number
  readonly attacks: Readonly<Record<Attack, number>>
  /** How often which exit code, or signal. */
  readonly endings: Readonly<Record<string, number>>
  readonly wrongCodes: readonly string[]
}

/** Keeps so many of them going until the budget is used up, and hurts one now and then. */
export async function crew(
  grounds: Grounds,
  seed: number,
  members: number,
  makeBudget: () => Budget,
  endConnections: () => Promise<void>,
): Promise<Outcome> {
  const running = new Set<Started>()
  const wrongCodes: string[] = []
  const endings: Record<string, number> = {}
  const done: Record<Attack, number> = Object.fromEntries(
    attacks.map((attack) => [attack, 0]),
  ) as Record<Attack, number>
  let [ran, lost, number, over] = [0, 0, 0, false]
  // The time that a busy machine needs to start them all is not counted.
  let budget: Budget | undefined
  const allows = (): boolean => {
    if (readFileSync(grounds.log, 'utf8') !== '') budget ??= makeBudget()
    return budget === undefined || budget.allows(number)
  }
  const member = async (): Promise<void> => {
    while (allows()) {
      const started = start(grounds, randomFor(seed, number))
      number += 1
      running.add(started)
      const [code, signal] = (await once(started.process, 'exit')) as [number | null, unknown]
      running.delete(started)
      const ending = String(code ?? signal)
      endings[ending] = (endings[ending] ?? 0) + 1
      if (code === started.wanted) ran += 1
      else if (code === lostCode && !started.hurt) lost += 1
      else if (!started.hurt) wrongCodes.push(`${started.wanted} became ${ending}`)
    }
  }
  const attacker = async (): Promise<void> => {
    const random = randomFor(seed, -2)
    while (!over) {
      await after(random.integer(50, 400))
      if (grounds.hurry === true && !allows()) {
        for (const each of running) {
          each.hurt = true
          each.process.kill('SIGTERM')
        }
      }
      const [attack] = (grounds.cutting === undefined ? random.sample(attacks, 1) : ['holder']) as [
        Attack,
      ]
      // Without the command around it, the process above a child is ours.
      const now = grounds.bare === true ? undefined : lastStart(grounds.log)
      if (now === undefined) continue
      // Whoever runs now is hurt; who else is, by a connection that ends, need not be known.
      for (const each of running)
        each.hurt ||= attack === 'connections' || each.process.pid === now.holder
      if (await attacked(attack, now, random, endConnections)) done[attack] += 1
    }
  }
  const attacking = attacker()
  await Promise.all(Array.from({ length: members }, member))
  over = true
  await attacking
  // Whom nobody ended, because the guardian did not care.
  for (const { child } of grounds.cutting === undefined ? [] : startsIn(grounds.log)) {
    sendSignal(child, 'SIGKILL')
  }
  return { ran, lost, attacks: done, endings, wrongCodes }
}

function start({ url, log, port, cutting, bare }: Grounds, random: Random): Started {
  const exit = random.integer(0, 9)
  const [code, wanted] = exit === 9 ? ['kill', 137] : [String(exit), exit]
  // Some outlast the lease of a holder that is gone.
  const [least, most] =
    cutting !== undefined
      ? [12_000, 12_000]
      : random.integer(0, 4) === 0
        ? [4_500, 6_000]
        : [20, 250]
  const workMs = String(random.integer(least, most))
  const command = [process.execPath, childProgram, log, String(port), workMs, code]
  const flags = ['--lock', 'deploy', '--ttl', String(ttlSeconds), '--grace', String(graceSeconds)]
  const line =
    bare === true
      ? command
      : [process.execPath, '--import', fromSource.href, main, 'exec', ...flags, '--', ...command]
  const [program = '', ...args] = line
  const child = spawn(program, args, {
    env: {
      ...process.env,
      DATABASE_URL: url,
      ...(cutting === undefined ? {} : { NODE_OPTIONS: `--import ${cutting.href}` }),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  child.stderr?.resume()
  return { process: child, wanted: bare === true && exit === 9 ? 0 : wanted, hurt: false }
}

interface Now {
  readonly child: number
  readonly guardian: number
  readonly holder: number | undefined
}

/** Who began last, if it has not ended. */
function lastStart(log: string): Now | undefined {
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n')
  if (lines.at(-1)?.startsWith('start') !== true) return undefined
  const started = startsIn(log).at(-1)
  return started === undefined ? undefined : { ...started, holder: parentOf(started.guardian) }
}

function startsIn(log: string): Omit<Now, 'holder'>[] {
  return [...readFileSync(log, 'utf8').matchAll(/^start (\d+) (\d+)/gm)].map(
    ([, child, guardian]) => ({ child: Number(child), guardian: Number(guardian) }),
  )
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return undefined
  }
}

async function attacked(
  attack: Attack,
  { child, guardian, holder }: Now,
  random: Random,
  endConnections: () => Promise<void>,
): Promise<boolean> {
  if (holder === undefined || holder === 1 || holder === process.pid) return false
  if (attack === 'child') return sendSignal(child, 'SIGKILL')
  if (attack === 'guardian') return sendSignal(guardian, 'SIGKILL')
  if (attack === 'connections') {
    await endConnections()
    return true
  }
  if (attack === 'stop') {
    const [target] = random.sample([holder, child, guardian], 1) as [number]
    if (!sendSignal(target, 'SIGSTOP')) return false
    // Short of the lease, or past it.
    await after(random.integer(100, ttlSeconds * 1_500))
    sendSignal(target, 'SIGCONT')
    return true
  }
  const isHit = sendSignal(holder, 'SIGKILL')
  if (attack === 'holder and child') sendSignal(child, 'SIGKILL')
  return isHit
}

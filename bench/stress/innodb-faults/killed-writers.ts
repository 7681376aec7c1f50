import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { lockKey } from '../../../packages/holdfast/src/core/locks/lock-key.ts'
import { createHoldfast, migrate } from '../../../packages/holdfast/src/mysql.ts'
import {
  type Cut,
  type CuttingWire,
  cuttingWire,
} from '../../../packages/holdfast/test/engines/innodb/support/cutting-wire.ts'
import type { Budget } from '../../harness/budget.ts'
import { openInnodbPool, numberOf } from '../../engines/innodb-pool.ts'
import {
  faultClients,
  type FaultClientName,
  faultKey,
  faultTable,
  openFaultClient,
} from './fault-client.ts'

export type WriterWay = 'guard' | 'told before commit' | 'no transaction'

export interface WriterSetup {
  readonly url: string
  readonly client: FaultClientName
  readonly way: WriterWay
}

export interface WriterTask {
  readonly id: string
}

export interface Killed {
  readonly killed: number
  readonly violations: readonly string[]
  /** How often a process was killed at what. */
  readonly at: Readonly<Record<string, number>>
}

const cuts: readonly Cut[] = ['unsent', 'under way', 'unheard']
/** More than a guard and two statements take on any of them. */
const mostCommands = 30

/** One place to kill a process at. */
interface Spot {
  readonly client: FaultClientName
  readonly cut: Cut
  readonly at: number
}

/**
 * A process is killed at each command that it sends, by a wire that knows which one it is: before it arrives, when it
 * has arrived, and when it was answered. What it had written is there as a whole or not at all: it is if COMMIT was
 * answered, or its caller told, and it is not if COMMIT had not arrived.
 */
export async function killedWriters(
  url: string,
  way: WriterWay,
  budget: Budget,
  stopAtFirst: boolean,
): Promise<Killed> {
  const pool = openInnodbPool(url, 2)
  const own = openFaultClient('mysql2', url, 2)
  await migrate(own.driver)
  await pool.query(faultTable)
  const hf = createHoldfast(own.driver)
  const violations: string[] = []
  const at: Record<string, number> = {}
  let [killed, number] = [0, 0]
  const spare = new Spare(url, way)
  /** Nothing if it was told that it is done before its turn came. */
  const kill = async (spot: Spot): Promise<string | undefined> => {
    number += 1
    const id = `writer-${number}`
    const seen = await killOne(await spare.take(spot.client), id, spot)
    if (seen.command === undefined) return undefined
    killed += 1
    at[spot.cut] = (at[spot.cut] ?? 0) + 1
    // Waits for whoever was at it.
    await hf.guard(lockKey(...faultKey), async () => undefined, { wait: '20 s' })
    const there = await numberOf(pool, `SELECT COUNT(*) FROM written WHERE id = '${id}'`)
    const wrong = wrongIn(there, seen, spot)
    if (wrong !== undefined)
      violations.push(
        `${spot.client}, killed with "${seen.command.replace(/[^ -~]+/g, '').slice(0, 40)}" ${spot.cut}: ${wrong}`,
      )
    return seen.command
  }
  try {
    for (let turn = 0; budget.allows(turn); turn += 1) {
      for (const client of faultClients) {
        for (const cut of cuts) {
          for (let command = 0; command < mostCommands; command += 1) {
            if (killed > 0 && !budget.allows(turn)) return { killed, violations, at }
            if (stopAtFirst && violations.length > 0) return { killed, violations, at }
            if ((await kill({ client, cut, at: command })) === undefined) break
          }
        }
      }
    }
    return { killed, violations, at }
  } finally {
    await spare.end()
    await own.end()
    await pool.end()
  }
}

interface Seen {
  /** What it was killed at; nothing if it was not. */
  readonly command: string | undefined
  readonly wasTold: boolean
}

/** The last thing that a guard sends on either product; without a transaction each statement is one. */
const commits = /autocommit = 1\b/

function wrongIn(
  there: number,
  { command = '', wasTold }: Seen,
  { cut }: Spot,
): string | undefined {
  if (there !== 0 && there !== 2) return 'a half of what it wrote is there'
  if (wasTold && there === 0) return 'it was told that it is done, and nothing is there'
  const mayCommit = commits.test(command)
  // What is prepared is not done yet; a client may have sent the order to do it right behind.
  const isCommit = mayCommit && !command.startsWith('prepare ')
  if (isCommit && cut === 'unheard' && there === 0)
    return 'COMMIT was answered, and nothing is there'
  if ((!mayCommit || cut === 'unsent') && there === 2 && !wasTold)
    return 'COMMIT had not arrived, and it is there'
  return undefined
}

async function killOne({ child, wire }: Writer, id: string, { at, cut }: Spot): Promise<Seen> {
  await using _ = wire
  const exited = once(child, 'exit')
  let wasTold = false
  const done = new Promise<void>((resolve, reject) => {
    child.on('message', (said: { readonly done?: string; readonly failed?: string }) => {
      if (said.failed !== undefined) reject(new Error(said.failed))
      wasTold ||= said.done === id
      if (wasTold) resolve()
    })
  })
  let wasKilled = false
  wire.arm(at, cut, () => {
    wasKilled = true
    child.kill('SIGKILL')
  })
  const task: WriterTask = { id }
  child.send(task)
  // Whoever tells too early goes on afterwards.
  const over = done.then(async () => {
    await Promise.race([exited, pause(200)])
  })
  await Promise.race([exited, over])
  const command = wasKilled ? (wire.commands[at] ?? '') : undefined
  if (!wasKilled) child.kill('SIGKILL')
  await exited
  return { command, wasTold }
}

interface Writer {
  readonly child: ChildProcess
  readonly wire: CuttingWire
}

/** Starting one takes longer than killing it: the next is started meanwhile, on a wire of its own. */
class Spare {
  readonly #url: string
  readonly #way: WriterWay
  readonly #started = new Map<FaultClientName, Promise<Writer>>()

  constructor(url: string, way: WriterWay) {
    this.#url = url
    this.#way = way
  }

  async take(client: FaultClientName): Promise<Writer> {
    const started = this.#started.get(client) ?? this.#start(client)
    const next = this.#start(client)
    next.catch(() => undefined)
    this.#started.set(client, next)
    return await started
  }

  async end(): Promise<void> {
    for (const started of this.#started.values()) {
      const { child, wire } = await started
      child.kill('SIGKILL')
      await wire[Symbol.asyncDispose]()
    }
  }

  async #start(client: FaultClientName): Promise<Writer> {
    const wire = await cuttingWire(this.#url)
    const setup: WriterSetup = { url: wire.url, client, way: this.#way }
    const child = fork(new URL('./writer.ts', import.meta.url), [JSON.stringify(setup)])
    const [said] = await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(() => [undefined]),
    ])
    if (said === undefined) throw new Error('a process that was to write has ended')
    return { child, wire }
  }
}

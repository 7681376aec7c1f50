import { type ChildProcess, fork } from 'node:child_process'
import { once as event } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { startEngine } from '../engines/engine.ts'
import { type Budget, rounds, seconds as lasting } from '../harness/budget.ts'
import { randomFor } from '../harness/random.ts'
import type { StressScenario } from '../harness/stress-scenario.ts'
import { openOnceStore } from './once-store.ts'

export type ToReceiver =
  | {
      readonly kind: 'open'
      readonly url: string
      readonly connections: number
      /** The control: without what makes a key unique. */
      readonly weakened: boolean
    }
  | { readonly kind: 'receive'; readonly webhook: string; readonly duplicates: number }

export type FromReceiver =
  | { readonly kind: 'ready' }
  | { readonly kind: 'answers'; readonly answers: readonly string[]; readonly trouble?: string }

const processes = 5
const duplicates = 50
const fullRounds = 500
/** Of `--seconds`; the rest is for starting and for the control. */
const roundsShare = 0.6
/** In every so many rounds one process is killed, some time after it was told to begin. */
const killEvery = 4
const killAfterMs = { least: 0, most: 25 }
const controlRounds = 20

export const once: StressScenario = {
  about: `${duplicates} duplicates of one webhook at once in ${processes} processes, some killed`,
  engines: ['postgres', 'mariadb', 'mysql'],
  async run({ engine, seconds, seed, progress }) {
    progress(`starting ${engine}`)
    await using server = await startEngine(engine)
    // Counted from when everybody is there.
    const budget = (): Budget =>
      seconds === undefined ? rounds(fullRounds) : lasting(seconds * roundsShare)
    const url = await server.createDatabase('once')
    const played = await play(url, false, budget, seed, progress)
    const weakUrl = await server.createDatabase('weakened')
    const weak = await play(
      weakUrl,
      true,
      () => rounds(controlRounds),
      seed,
      () => undefined,
    )
    return {
      operations: played.rounds * duplicates,
      violations: played.violations,
      controls: { no_unique: weak.violations.length > 0 ? 'caught' : 'missed' },
      notes: [
        `${played.rounds} webhooks, ${duplicates} times each; ${played.killed} processes killed`,
        `${played.answers} answers, one for each webhook`,
        `without unique keys: ${weak.violations[0] ?? 'nothing went wrong'}`,
      ],
    }
  },
}

interface Played {
  readonly rounds: number
  readonly killed: number
  readonly answers: number
  readonly violations: string[]
}

async function play(
  url: string,
  weakened: boolean,
  begin: () => Budget,
  seed: number,
  progress: (text: string) => void,
): Promise<Played> {
  const kills = !weakened
  await using store = await openOnceStore(url, 1, weakened)
  await store.prepare(weakened)
  await using receivers = await openReceivers(url, weakened)
  const violations: string[] = []
  const budget = begin()
  let [round, killed, answers] = [0, 0, 0]
  // The control ends with what it was looking for.
  for (; budget.allows(round) && (kills || violations.length === 0); round += 1) {
    const webhook = `webhook-${round}`
    const random = randomFor(seed, round)
    const victim = kills && round % killEvery === 1 ? random.integer(0, processes - 1) : undefined
    const afterMs = random.integer(killAfterMs.least, killAfterMs.most)
    const given = await receivers.round(webhook, victim, afterMs)
    if (victim !== undefined) killed += 1
    // Who heard nothing asks again; by now somebody has done it.
    given.push(...(await receivers.one(webhook)))
    answers += given.length
    const effects = await store.effectsOf(webhook)
    if (effects.length !== 1) violations.push(`${webhook} had ${effects.length} effects`)
    const different = given.filter((answer) => answer !== effects[0])
    if (different.length > 0) {
      violations.push(`${webhook} was answered otherwise ${different.length} times`)
    }
    if (round % 50 === 49) progress(`${round + 1} webhooks, ${killed} processes killed`)
  }
  return { rounds: round, killed, answers, violations }
}

interface Receivers extends AsyncDisposable {
  /** Everybody receives it at once; the victim is killed meanwhile and replaced. Gives all answers. */
  round(webhook: string, victim: number | undefined, afterMs: number): Promise<string[]>
  /** One of them receives it once. */
  one(webhook: string): Promise<readonly string[]>
}

async function openReceivers(url: string, weakened: boolean): Promise<Receivers> {
  const each = duplicates / processes
  const open = async (): Promise<ChildProcess> => {
    const child = fork(new URL('./once-receiver.ts', import.meta.url), { stdio: 'inherit' })
    await ask(child, { kind: 'open', url, connections: each, weakened })
    return child
  }
  const all = await Promise.all(Array.from({ length: processes }, open))
  return {
    async round(webhook, victim, afterMs) {
      const asked = all.map((child) => ask(child, { kind: 'receive', webhook, duplicates: each }))
      if (victim !== undefined) {
        await pause(afterMs)
        const child = all[victim] as ChildProcess
        const ended = event(child, 'exit')
        child.kill('SIGKILL')
        await ended
        all[victim] = await open()
      }
      return (await Promise.all(asked)).flat()
    },
    one: (webhook) => ask(all[0] as ChildProcess, { kind: 'receive', webhook, duplicates: 1 }),
    async [Symbol.asyncDispose]() {
      await Promise.all(
        all.map(async (child) => {
          const ended = event(child, 'exit')
          child.kill('SIGKILL')
          await ended
        }),
      )
    },
  }
}

/** The answers of one process; none if it was killed before it could give them. */
async function ask(child: ChildProcess, message: ToReceiver): Promise<readonly string[]> {
  return await new Promise((resolve, reject) => {
    const onExit = (): void => {
      child.off('message', onMessage)
      resolve([])
    }
    const onMessage = (answer: FromReceiver): void => {
      child.off('exit', onExit)
      if (answer.kind === 'ready') resolve([])
      else if (answer.trouble === undefined) resolve(answer.answers)
      else reject(new Error(answer.trouble))
    }
    child.once('exit', onExit)
    child.once('message', onMessage)
    child.send(message)
  })
}

import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { sendSignal } from '@holdfast/testkit'
import type { HolderNews, HolderTask } from './lock-holder.ts'
import {
  fillWallets,
  type Keeper,
  type KeeperName,
  keepers,
  type KeeperTerms,
  leftIn,
  type LockPlaces,
} from './lock-keepers.ts'

/** What became of a wallet with one in it, of which two want one. */
export interface Aftermath {
  /** Of the two. */
  readonly granted: number
  readonly left: number
  /** From the signal until the next one has read the balance. */
  readonly nextInMs: number
  /** What the holder was told, if it woke up. */
  readonly holder: string
}

interface Case {
  readonly places: LockPlaces
  readonly terms: KeeperTerms
  readonly name: KeeperName
}

/** A holder stops between its check and its write, for three times as long as its lock lasts. */
export async function standStill({ places, terms, name }: Case): Promise<Aftermath> {
  await using scene = await sceneOf({ places, terms, name })
  const { holder, next, wallet } = scene
  const pid = holder.pid as number
  const began = performance.now()
  sendSignal(pid, 'SIGSTOP')
  const call = spendAfter(next, wallet, began)
  try {
    await Promise.race([call, pause(3 * terms.ttlMs)])
  } finally {
    sendSignal(pid, 'SIGCONT')
  }
  const told = once(holder, 'message')
  holder.send('go on')
  const [news] = (await told) as [Exclude<HolderNews, 'between'>]
  const { granted, inMs } = await call
  return {
    granted: Number(granted) + Number(news.granted),
    left: await leftIn(places.url, wallet),
    nextInMs: inMs,
    holder: news.granted ? 'written' : `refused: ${news.refusedBy ?? 'nothing left'}`,
  }
}

/** A holder is killed between its check and its write. */
export async function killed({ places, terms, name }: Case): Promise<Aftermath> {
  await using scene = await sceneOf({ places, terms, name })
  const { holder, next, wallet } = scene
  const began = performance.now()
  holder.kill('SIGKILL')
  const { granted, inMs } = await spendAfter(next, wallet, began)
  return {
    granted: Number(granted),
    left: await leftIn(places.url, wallet),
    nextInMs: inMs,
    holder: 'killed',
  }
}

interface Scene extends AsyncDisposable {
  readonly wallet: string
  /** Has checked, and has not written. */
  readonly holder: ChildProcess
  readonly next: Keeper
}

async function sceneOf({ places, terms, name }: Case): Promise<Scene> {
  const [wallet, other] = [randomUUID(), randomUUID()]
  await fillWallets(places.url, [wallet, other], 1)
  const next = await keepers[name](places, terms)
  await next.spend(other)
  const task: HolderTask = { keeper: name, places, terms: { ...terms, connections: 2 }, wallet }
  const holder = fork(new URL('./lock-holder.ts', import.meta.url), [JSON.stringify(task)])
  const [news] = (await once(holder, 'message')) as [HolderNews]
  if (news !== 'between') throw new Error(`${name}: the holder did not get in`)
  return {
    wallet,
    holder,
    next,
    async [Symbol.asyncDispose]() {
      if (holder.exitCode === null && holder.signalCode === null) {
        const gone = once(holder, 'exit')
        holder.kill('SIGKILL')
        await gone
      }
      await next[Symbol.asyncDispose]()
    },
  }
}

async function spendAfter(
  keeper: Keeper,
  wallet: string,
  began: number,
): Promise<{ granted: boolean; inMs: number }> {
  let inMs: number | undefined
  const granted = await keeper.spend(wallet, async () => {
    inMs = performance.now() - began
  })
  return { granted, inMs: inMs ?? performance.now() - began }
}

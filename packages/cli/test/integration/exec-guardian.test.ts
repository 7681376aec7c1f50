/** What ends a command whose lease is over, if the guardian that should do so stands still. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { sendSignal, waitUntil } from '@holdfast/testkit'
import { expect, onTestFinished, test } from 'vitest'
import { execTerms } from '../../src/exec/exec-terms.ts'
import { GuardedCommand } from '../../src/exec/guarded-command.ts'
import { machineMs } from '../../src/exec/machine-clock.ts'

/** A command that only SIGKILL ends, under a guardian that stands still. */
async function stubbornUnderStopped() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-exec-'))
  const file = join(folder, 'pids')
  // Long enough for a silent guardian not to be missed before the lease is over.
  const terms = execTerms(60_000, 500)
  const script = `trap '' TERM; echo "$PPID $$" > ${file}; while :; do sleep 0.05; done`
  const until = machineMs() + terms.ttlMs - terms.stopBeforeMs
  const command = await GuardedCommand.start(['sh', '-c', script], process.env, terms, until)
  const look = (): [guardian: number, child: number] | undefined => {
    try {
      const [, ...pids] = /^(\d+) (\d+)\n$/.exec(readFileSync(file, 'utf8')) ?? []
      return pids.length === 0 ? undefined : (pids.map(Number) as [number, number])
    } catch {
      return undefined
    }
  }
  const [guardian, child] = await waitUntil('it runs', look, { limitMs: 45_000 })
  onTestFinished(() => {
    for (const pid of [guardian, child]) sendSignal(pid, 'SIGKILL')
    rmSync(folder, { recursive: true })
  })
  sendSignal(guardian, 'SIGSTOP')
  return { command, child, terms }
}

/** An orphan that was killed stays a zombie until the machine's first process looks, which can take seconds. */
const runs = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return !'ZX'.includes(stat.slice(stat.lastIndexOf(')') + 2).charAt(0))
  } catch {
    return false
  }
}

const whenGone = async (pid: number): Promise<number> => {
  await waitUntil(`process ${pid} is gone`, () => !runs(pid) || undefined)
  return machineMs()
}

test('the lease cannot be renewed, and the guardian stands still: it is gone before the lease expires', async () => {
  const { command, child, terms } = await stubbornUnderStopped()
  const until = machineMs() + 500
  command.allow(until)
  expect(await whenGone(child)).toBeLessThan(until + terms.stopBeforeMs)
  expect(await command.ended).toEqual({ code: null, signal: null, cut: true })
})

test('the lease is lost for certain, and the guardian stands still: it is gone at once', async () => {
  const { command, child, terms } = await stubbornUnderStopped()
  const lostAt = machineMs()
  command.allow(0)
  expect(await whenGone(child)).toBeLessThan(lostAt + terms.spareMs)
  expect(await command.ended).toEqual({ code: null, signal: null, cut: true })
})

test('control: as long as the lease is renewed, it runs', async () => {
  const { command, child } = await stubbornUnderStopped()
  const end = machineMs() + 2_000
  while (machineMs() < end) {
    command.allow(machineMs() + 20_000)
    await setImmediate()
    expect(runs(child)).toBe(true)
  }
})

import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { runWithin } from '../../../../../scripts/matrix/run-within.ts'

let cwd: string
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'holdfast-matrix-'))
  const folder = cwd
  onTestFinished(() => rmSync(folder, { recursive: true }))
})

const run = (limitMs: number, source: string): ReturnType<typeof runWithin> =>
  runWithin(limitMs, ['-e', source], { cwd, env: process.env })

describe('one row of npm run test:matrix', () => {
  test('ends by itself, and what it said is kept', async () => {
    expect(await run(60_000, 'console.error("why")')).toEqual({ said: 'why\n', ended: true })
  })

  test('is killed when its time is over, with what it has started', async () => {
    // What vitest starts may have closed stderr, and may heed no SIGTERM.
    const worker = `process.on('SIGTERM', () => {})
      setInterval(() => require('node:fs').appendFileSync('alive', '.'), 20)
      setTimeout(() => process.exit(), 30000)`
    const parent = `require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(worker)}], { stdio: 'ignore' })
      const wait = setInterval(() => {
        if (!require('node:fs').existsSync('alive')) return
        clearInterval(wait)
        console.error('working')
      }, 10)
      setTimeout(() => {}, 30000)`
    const { said, ended } = await run(5_000, parent)
    expect(ended).toBe(false)
    // A machine too busy to start two processes in that time has shown nothing.
    if (!existsSync(join(cwd, 'alive'))) throw new Error('too late: nothing was started')
    expect(said).toBe('working\n')
    const size = (): number => statSync(join(cwd, 'alive')).size
    const before = size()
    await pause(500)
    expect(size()).toBe(before)
    expect(readFileSync(join(cwd, 'alive'), 'utf8')).toMatch(/^\.+$/)
  })
})

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startInnodb } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import type { Measured } from '../demo/measure.ts'
import { faults } from '../demo/report.ts'
import { fromSource } from './from-source.ts'

const demo = fileURLToPath(new URL('../demo/demo.ts', import.meta.url))

describe.concurrent('the demo', () => {
  // Whether the unprotected one does damage is chance. What the protected one does is not.
  const chance = (error: { readonly message: string }): boolean =>
    !error.message.includes('Holdfast:')
  const often = { timeout: 240_000, retry: { count: 2, condition: chance } }

  // What PostgreSQL does has examples of its own.
  test.each(['mysql', 'sqlite'])(
    'shows the damage by hand and none with Holdfast: %s',
    often,
    async (engine) => {
      const args = ['--import', fromSource, demo, '--engine', engine]
      await using server = engine === 'mysql' ? await startInnodb('mariadb-10') : undefined
      const env = { ...process.env, MYSQL_URL: await server?.createDatabase() }
      const { stdout } = await promisify(execFile)(process.execPath, args, { env })
      expect(stdout).toMatch(/^jobs done more than once +1 +0$/m)
      expect(stdout).toMatch(/^orders nobody will be told of +1 +0$/m)
    },
  )
})

describe('the demo fails', () => {
  const fine: Measured = {
    oversold: 0,
    overLimit: 0,
    untold: 0,
    jobsTwice: 0,
    reportsTwice: 0,
    missing: 0,
  }
  const damaged: Measured = {
    oversold: 2,
    overLimit: 2,
    untold: 1,
    jobsTwice: 1,
    reportsTwice: 3,
    missing: 0,
  }

  test('if Holdfast does damage, or not all of the work', () => {
    expect(faults('mysql', { 'by hand': damaged, holdfast: damaged })).toHaveLength(5)
    expect(faults('mysql', { 'by hand': damaged, holdfast: { ...fine, missing: 1 } })).toEqual([
      'mysql, Holdfast: 1 not done',
    ])
  })

  test('if nothing happens by hand', () => {
    expect(faults('mysql', { 'by hand': fine, holdfast: fine })).toHaveLength(5)
  })

  test('and not otherwise', () => {
    expect(faults('mysql', { 'by hand': damaged, holdfast: fine })).toEqual([])
  })
})

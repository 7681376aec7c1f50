/** What the example says of its three ways, in every order of their statements. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createDatabase } from '@holdfast/testkit'
import { expect, inject, test } from 'vitest'
import { fromSource } from './from-source.ts'

const race = fileURLToPath(new URL('../race/redeem.ts', import.meta.url))

test('the bug is found, and the fixes hold', { timeout: 240_000 }, async () => {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', fromSource, '--test', '--test-force-exit', '--test-reporter', 'tap', race],
    {
      env: {
        ...env,
        NODE_ENV: 'test',
        DATABASE_URL: await createDatabase(inject('postgresUrl'), 'race'),
      },
    },
  )
  expect(stdout).toMatch(/^# pass 3$/m)
})

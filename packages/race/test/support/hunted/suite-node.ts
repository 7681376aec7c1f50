import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call } from '../../../src/hunt.ts'
import { folderMode, runSuite } from './suite.ts'

void test('both are answered', async () => {
  const statuses = await runSuite(async () => {
    if (process.env['WITH_CALL'] === undefined) return
    const { calls } = await import('./app.ts')
    await call('expire coupons', calls['expire coupons'], 'A')
  })
  assert.deepEqual(statuses, [200, 200])
  if (process.env['HOLDFAST_HUNT_SOCKET'] !== undefined) assert.equal(folderMode(), '700')
  assert.equal(process.env['SUITE'], undefined, 'told to fail')
})

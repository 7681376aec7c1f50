import { expect, test } from 'vitest'
import { runSuite } from './suite.ts'

test('both are answered', async () => {
  expect(await runSuite()).toEqual([200, 200])
})

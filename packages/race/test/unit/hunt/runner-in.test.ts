import { expect, test } from 'vitest'
import { runnerIn } from '../../../src/command/write-test-files.ts'

test.each([
  ['npx vitest run', 'vitest'],
  ['pnpm --filter api exec jest -i', 'jest'],
  ['node node_modules/jest/bin/jest.js', 'jest'],
  ['node_modules\\.bin\\vitest.cmd run', 'vitest'],
  ['node --test test/*.ts', 'node'],
  // The control: only package.json knows what that is.
  ['npm test', undefined],
  ['node server.js', undefined],
])('%s is run by %s', (command, runner) => {
  expect(runnerIn(command.split(' '))).toBe(runner)
})

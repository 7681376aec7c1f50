import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { callersOf } from '../../../src/core/locks/call-site.ts'

const theirs = '    at handler (file:///app/shop.mts:9:127)'

/** What a stack looks like in a project of somebody else. */
function stackWith(own: string): { readonly stack: string } {
  return { stack: ['Error', `    at Object.guard (${own})`, theirs].join('\n') }
}

describe('the line of the caller', () => {
  const chunk = '/app/node_modules/holdfast/dist/cjs/chunks/core.cjs'
  const drive = 'C:\\my app (1)\\node_modules\\holdfast\\dist\\cjs\\chunks\\core.cjs'

  test.each([
    ['as it runs', chunk, `${chunk}:140:18`],
    ['as it runs, as a module', `file://${chunk}`, `file://${chunk}:140:18`],
    ['with source maps', chunk, '/app/node_modules/holdfast/src/core/activity.ts:140:18'],
    ['on Windows', drive, `${drive}:140:18`],
    ['behind Node', chunk, 'node:internal/process/task_queues:1:1'],
  ])('is not one of ours: %s', (_, own, line) => {
    expect(callersOf(stackWith(line), `    at ownLine (${own}:9:9)`)).toBe(theirs)
    expect(callersOf(stackWith(line), `    at ${own}:9:9`)).toBe(theirs)
  })

  test('is any line where a bundler has put us among others', () => {
    const bundle = '/app/server/bundle.js'
    const ours = `    at ownLine (${bundle}:9:9)`
    expect(callersOf(stackWith(`${bundle}:1:1`), ours)).toContain('bundle.js:1:1')
  })

  test('needs nobody to say where we are', () => {
    const line = `${fileURLToPath(new URL('../../../src/core/activity.ts', import.meta.url))}:1:1`
    expect(callersOf(stackWith(line))).toBe(theirs)
  })
})

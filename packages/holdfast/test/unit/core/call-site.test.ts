import { describe, expect, test } from 'vitest'
import { callersOf } from '../../../src/core/call-site.ts'

const theirs = '    at handler (file:///app/shop.mts:9:127)'

/** What a stack looks like in a project of somebody else. */
function stackWith(own: string): { readonly stack: string } {
  return { stack: ['Error', `    at Object.guard (${own})`, theirs].join('\n') }
}

describe('the line of the caller', () => {
  const url = 'file:///app/node_modules/holdfast/dist/core/call-site.js'

  test.each([
    ['as it runs', 'file:///app/node_modules/holdfast/dist/core/activity.js:140:18'],
    ['with source maps', '/app/node_modules/holdfast/src/core/activity.ts:140:18'],
    ['behind Node', 'node:internal/process/task_queues:1:1'],
  ])('is not one of ours: %s', (_, own) => {
    expect(callersOf(stackWith(own), url)).toBe(theirs)
  })

  test('is any line where a bundler has left no url', () => {
    expect(callersOf(stackWith('file:///app/bundle.js:1:1'), '')).toContain('bundle.js')
  })
})

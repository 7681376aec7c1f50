import { describe, expect, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import * as places from '../../../src/core/handler-places.ts'
import * as tracing from '../../../src/core/events/tracing.ts'

/** The same module once more, as a bundler would put it into a second bundle. */
async function secondCopy<T extends object>(path: string, first: T): Promise<T> {
  const second = (await import(/* @vite-ignore */ `${path}?second`)) as T
  expect(second).not.toBe(first)
  return second
}

describe('two copies in one process share', () => {
  test('the tracer: who sets it may be in another bundle than who works', async () => {
    const second = await secondCopy('../../../src/core/events/tracing.ts', tracing)
    expect(second.traceBy).not.toBe(tracing.traceBy)
    const before = tracing.traceBy({ run: (_name, _subject, body) => body({} as never) })
    try {
      expect(second.isTraced()).toBe(true)
    } finally {
      tracing.traceBy(before)
    }
    expect(second.isTraced()).toBe(before !== undefined)
  })

  test('the places of a pool: together they leave one connection to heartbeats', async () => {
    const second = await secondCopy('../../../src/core/handler-places.ts', places)
    const driver = { capabilities: { pool: { of: {}, size: 3 } } } as unknown as Driver<never>
    expect(second.handlerPlacesOf(driver)).toBe(places.handlerPlacesOf(driver))
    const other = { capabilities: { pool: { of: {}, size: 3 } } } as unknown as Driver<never>
    expect(second.handlerPlacesOf(other)).not.toBe(places.handlerPlacesOf(driver))
  })
})

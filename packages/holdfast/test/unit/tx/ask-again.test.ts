import { expect, onTestFinished, test, vi } from 'vitest'
import { holdfastError } from '../../../src/core/errors.ts'
import { askAgain } from '../../../src/tx/ask-again.ts'

/** Asks for an answer that never comes, with the shortest pauses that chance can give. */
async function timesAsked(forMs: number): Promise<number> {
  const random = vi.spyOn(Math, 'random').mockReturnValue(0)
  onTestFinished(() => random.mockRestore())
  let times = 0
  const asking = askAgain(
    async () => {
      times += 1
      throw holdfastError('COMMIT_UNKNOWN')
    },
    { forMs },
  )
  await expect(asking).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' })
  return times
}

test('whoever gives one millisecond is asked for nothing twice', async () => {
  expect(await timesAsked(1)).toBe(1)
})

test('whoever gives more is, until that has passed', async () => {
  expect(await timesAsked(100)).toBeGreaterThan(1)
})

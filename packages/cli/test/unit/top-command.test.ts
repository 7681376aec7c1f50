/** What the live screen does while a look is under way; the screen and the server are played by the test. */
import { deferred } from '@holdfast/testkit'
import type { LockTree } from 'holdfast/observe'
import { expect, test } from 'vitest'
import type { Call } from '../../src/command.ts'
import { top } from '../../src/commands/top.ts'
import { plain } from '../../src/terminal/paint.ts'
import type { Key } from '../../src/terminal/terminal.ts'
import { incident } from '../support/lock-trees.ts'

test('a key that is pressed while it looks is not lost', async () => {
  const slow = deferred<LockTree>()
  const asked = deferred<void>()
  let looks = 0
  const locks = async (): Promise<LockTree> => {
    looks += 1
    if (looks !== 2) return incident
    asked.resolve()
    return await slow.promise
  }
  const drawn: string[] = []
  let press: (key: Key) => void = () => undefined
  let closed = false
  const call = {
    flags: {},
    asJson: false,
    around: {
      stopSignal: () => new AbortController().signal,
      onSignals: () => () => undefined,
      terminal: {
        paint: plain,
        size: () => ({ columns: 100, rows: 20 }),
        openScreen: (onKey: (key: Key) => void) => {
          press = onKey
          return {
            draw: (lines: readonly string[]) => void drawn.push(lines.join('\n')),
            close: () => {
              closed = true
            },
          }
        },
      },
    },
    observe: (use: (observer: unknown) => Promise<unknown>) => use({ locks }),
  }
  const running = top.run(call as unknown as Call)
  await asked.promise
  press({ name: 'return', ctrl: false })
  expect(drawn.at(-1)).toContain('waits for nobody')
  const before = drawn.length
  slow.resolve(incident)
  await slow.promise
  while (drawn.length === before) await Promise.resolve()
  expect(drawn.at(-1)).toContain('waits for nobody')
  press({ name: 'c', ctrl: true })
  expect(await running).toBe(0)
  expect(closed).toBe(true)
})

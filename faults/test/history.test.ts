import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { openHistory } from '../history/open-history.ts'
import { operationsOf } from '../history/operations-of.ts'
import { readHistory } from '../history/read-history.ts'

const folder = mkdtempSync(join(tmpdir(), 'history-'))
afterEach(() => rmSync(folder, { recursive: true }))

it('puts the files of all processes in order, and leaves out half a line', () => {
  const common = { workload: 'quota', operation: 'consume', key: 'ann' }
  using one = openHistory(folder, 'app0.1')
  using two = openHistory(folder, 'app1.1')
  using nemesis = openHistory(folder, 'nemesis')
  one.append({ ...common, at: '100', process: 'app0.1', attempt: 'a', type: 'invoke' })
  two.append({ ...common, at: '110', process: 'app1.1', attempt: 'b', type: 'invoke' })
  nemesis.append({ at: '115', fault: 'kill', type: 'begins' })
  one.append({ ...common, at: '120', process: 'app0.1', attempt: 'a', type: 'ok', value: 7 })
  // Killed while it wrote that it was told something.
  appendFileSync(join(folder, 'app1.1.jsonl'), '{"at":"130","process":"app1.1","ty')

  const { events, faults } = readHistory(folder)
  expect(faults).toHaveLength(1)
  expect(events.map(({ at }) => at)).toEqual(['100', '110', '120'])
  expect(operationsOf(events)).toMatchObject([
    { attempt: 'a', outcome: 'ok', began: 0, ended: 20, answered: 7 },
    { attempt: 'b', outcome: 'unknown', began: 10, ended: Number.POSITIVE_INFINITY },
  ])
})

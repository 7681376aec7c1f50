/** What a brief run leaves out, and what it begins with: everything that is named is there. */
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  filesLeftOut,
  type LeftOut,
  leftOut,
  lost,
  titlesLeftOut,
} from '../../../../../scripts/brief/left-out.ts'
import { slow } from '../../../../../scripts/brief/slow-first.ts'

const root = new URL('../../../../../', import.meta.url)
const because = 'another one says the same'

test('every file and every test of the list is there', () => {
  expect(lost(leftOut, root)).toEqual([])
})

test('every file that begins early is there', () => {
  expect(slow.filter((file) => !existsSync(new URL(file, root)))).toEqual([])
})

test('the control: what has another name is told', () => {
  const own = 'packages/holdfast/test/unit/brief/left-out.test.ts'
  const gone = ['no', 'such', 'test'].join(' ')
  const list: readonly LeftOut[] = [
    { file: 'packages/no-such.test.ts', because },
    { file: own, tests: [gone, 'every file and every test of the list is there'], because },
  ]
  expect(lost(list, root)).toEqual([
    'packages/no-such.test.ts: no such file',
    `${own}: no test called ${gone}`,
  ])
})

test('a file without tests is left out as a whole, one with tests is not', () => {
  const list: readonly LeftOut[] = [
    { file: 'whole.test.ts', because },
    { file: 'part.test.ts', tests: ['one'], because },
    { file: 'part.test.ts', tests: ['other'], because },
  ]
  expect(filesLeftOut(list)).toEqual(['whole.test.ts'])
  expect(titlesLeftOut('part.test.ts', list)).toEqual(['one', 'other'])
  expect(titlesLeftOut('whole.test.ts', list)).toEqual([])
})

/**
 * Plain words in what users read: the pages, the messages of errors, and the console. The second half shows that each rule
 * goes red.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { errorCodes } from '../../src/errors.ts'
import { readPages } from '../docs/checks/pages.ts'
import { banned, checkPassage, checkPlainWords, passagesOf } from './tidy/plain-words.ts'
import { passagesOnScreen } from './tidy/screen-words.ts'

/** Those for everybody; READMEs of folders are for whoever works in them. */
const pages = readPages().filter(({ path }) =>
  /^(?:README|ARCHITECTURE|CONTRIBUTING|SECURITY|AGENTS)\.md$|^docs\//.test(path),
)
const messages = Object.entries(errorCodes).flatMap(([code, { what, next }]) => [
  { place: code, text: what },
  { place: code, text: next },
])

const screens = new URL('../../../console/src/ui/', import.meta.url)
const screenFiles = readdirSync(screens, { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.tsx?$/.test(path))
  .toSorted()

function checkScreen(path: string, source: string): string[] {
  return passagesOnScreen(path, source).flatMap((passage) => checkPassage(path, passage))
}

describe('plain words', () => {
  test('on the pages of the console', () => {
    const sources = screenFiles.map((path) => [path, readFileSync(new URL(path, screens), 'utf8')])
    const read = sources.flatMap(([path = '', source = '']) => passagesOnScreen(path, source))
    expect(read.map(({ text }) => text)).toContain('Nobody waits.')
    expect(sources.flatMap(([path = '', source = '']) => checkScreen(path, source))).toEqual([])
  })

  test('in the messages of errors', () => {
    expect(messages.flatMap((message) => checkPlainWords(message))).toEqual([])
  })

  test.each(pages.map(({ path, text }) => [path, text]))('in %s', (place, text) => {
    expect(checkPlainWords({ place, text })).toEqual([])
  })

  test('every page for everybody is among them', () => {
    const paths = pages.map(({ path }) => path)
    expect(paths).toEqual(
      expect.arrayContaining(['README.md', 'ARCHITECTURE.md', 'docs/README.md']),
    )
  })
})

describe('the check goes red', () => {
  const examples: readonly (readonly [text: string, found: string])[] = [
    ['An amount is put aside.', 'put aside'],
    ['The words of yours are kept.', 'words of yours'],
    ['What is due is booked by the next operation.', 'What is due'],
    ['Mend it and go on.', 'Mend'],
    ['The lost ones are told.', 'are told'],
    ['10 s unless you say otherwise', 'unless you say otherwise'],
    ['Without the database nothing is done, and it lets nothing through.', 'lets nothing through'],
    ['It fails without a word.', 'without a word'],
    ['Nothing happens behind your back.', 'behind your back'],
    ['A look takes long.', 'A look'],
    ['A room is a folder.', 'room'],
    ["A lock of somebody else's is in somebody's way.", "in somebody's way"],
    ['It is known to nobody but the server.', 'nobody but'],
    ['| call | until told |', 'until told'],
    ['Look outside\nof the database.', 'outside of'],
  ]
  const words = (count: number): string =>
    `${Array.from({ length: count }, () => 'word').join(' ')}.`
  const check = (text: string): string[] => checkPlainWords({ place: 'a.md', text })

  test.each(examples)('for %j', (text, found) => {
    expect(check(text)).toEqual([expect.stringMatching(new RegExp(`^a.md:1 says "${found}"`))])
  })

  test('each phrase of the list has such an example', () => {
    const unseen = banned.filter(
      ([phrase]) => !examples.some(([text]) => phrase.test(text.replace('\n', ' '))),
    )
    expect(unseen).toEqual([])
  })

  test.each([
    ['a paragraph', words(31)],
    ['a paragraph over two lines', words(31).replaceAll('word word word', 'word\nword word')],
    ['an item', `- ${words(5)}\n- ${words(31)}`],
    ['a cell', `| a | b |\n| - | - |\n| x | ${words(31)} |`],
    ['the second sentence', `Short. ${words(31).replace('word', 'Word')}`],
    ['links and code', `${words(29).slice(0, -1)} [one](https://example.org/a/b) \`two three\`.`],
  ])('for a long sentence in %s', (_, text) => {
    expect(check(text)).toEqual([expect.stringContaining('a sentence of 31 words')])
  })

  test.each([
    ['thirty words', words(30)],
    ['two sentences', `${words(20)} ${words(20).replace('word', 'Word')}`],
    ['two items', `- ${words(20)}\n- ${words(20)}`],
    ['two cells', `| ${words(20)} | ${words(20)} |`],
    ['code', `\`\`\`ts\n${words(40)} is told\n\`\`\``],
    ['a picture', `![${words(40)}](a.png)`],
    ['a word in code', 'Call `put aside`.'],
    ['a list of code', `These: ${'`a`, '.repeat(40)}and \`b\`.`],
  ])('and stays green for %s', (_, text) => {
    expect(check(text)).toEqual([])
  })

  test.each([
    [
      'a sentence with links and figures',
      `<p>${words(15).slice(0, -1)} <b>then</b> {n} <i>${words(15)}</i></p>`,
    ],
    ['an attribute', `<Button title="${words(31)}" />`],
    ['a template', `const a = \`${words(30).slice(0, -1)} \${n}.\``],
  ])('for a long sentence on a screen: %s', (_, source) => {
    expect(checkScreen('a.tsx', source)).toEqual([
      expect.stringMatching(/^a\.tsx:1 has a sentence/),
    ])
  })

  test('for a phrase on a screen, wherever it is', () => {
    const source = `import 'a room'
const a = <p class="a room">Two <code>rooms</code> {n > 1 ? 'are told' : \`\${n} is mended\`}</p>`
    expect(checkScreen('a.tsx', source)).toEqual([
      expect.stringContaining('says "are told"'),
      expect.stringContaining('says "mended"'),
      expect.stringContaining('says "rooms"'),
    ])
  })

  test('and stays green for two paragraphs beside each other', () => {
    const source = `<div><p>${words(20)}</p><p>${words(20)}</p></div>`
    expect(checkScreen('a.tsx', source)).toEqual([])
  })

  test('passages know their lines', () => {
    const text = '# A\n\nb\nc\n\n```\nd\n```\n- e\n- f\n\n| g | h |'
    expect(passagesOf(text)).toEqual([
      { line: 1, text: 'A' },
      { line: 3, text: 'b c' },
      { line: 9, text: 'e' },
      { line: 10, text: 'f' },
      { line: 12, text: 'g' },
      { line: 12, text: 'h' },
    ])
  })
})

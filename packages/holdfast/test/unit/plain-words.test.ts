/** Plain words in what users read: the pages, and the messages of errors. The second half shows that each rule goes red. */
import { describe, expect, test } from 'vitest'
import { errorCodes } from '../../src/errors.ts'
import { readPages } from '../docs/checks/pages.ts'
import { banned, checkPlainWords, passagesOf } from './tidy/plain-words.ts'
import { longSentences, notYetPlain } from './tidy/plain-words-exceptions.ts'

/** Those for everybody; READMEs of folders are for whoever works in them. */
const pages = readPages().filter(({ path }) =>
  /^(?:README|ARCHITECTURE|CONTRIBUTING|SECURITY|AGENTS)\.md$|^docs\//.test(path),
)
const messages = Object.entries(errorCodes).flatMap(([code, { what, next }]) => [
  { place: code, text: what },
  { place: code, text: next },
])

function findingsIn(place: string, text: string): string[] {
  return checkPlainWords({ place, text }, longSentences[place])
}

describe('plain words', () => {
  test('in the messages of errors', () => {
    expect(messages.flatMap(({ place, text }) => findingsIn(place, text))).toEqual([])
  })

  test.each(
    pages.filter(({ path }) => !notYetPlain.includes(path)).map(({ path, text }) => [path, text]),
  )('in %s', (path, text) => {
    expect(findingsIn(path, text)).toEqual([])
  })

  test('the list of pages that are not plain yet only gets shorter', () => {
    const open = pages.filter(({ path, text }) => findingsIn(path, text).length > 0)
    const paths = open.map(({ path }) => path)
    expect(notYetPlain.filter((path) => !paths.includes(path))).toEqual([])
    expect(pages.map(({ path }) => path)).toContain('README.md')
    expect(notYetPlain).not.toContain('README.md')
    expect(notYetPlain).not.toContain('ARCHITECTURE.md')
    expect(notYetPlain).not.toContain('docs/README.md')
  })

  test('every exception is needed', () => {
    const places = [...pages.map(({ path, text }) => ({ place: path, text })), ...messages]
    for (const [place, starts] of Object.entries(longSentences)) {
      const texts = places.filter((each) => each.place === place)
      const long = texts.flatMap((each) => checkPlainWords(each)).length
      const left = texts.flatMap((each) => checkPlainWords(each, starts)).length
      expect({ place, needed: long - left }).toEqual({ place, needed: starts.length })
    }
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

  test('and an exception is one sentence of one page', () => {
    const text = `${words(31)} ${words(31).replace('word', 'Other')}`
    expect(checkPlainWords({ place: 'a.md', text }, ['word word'])).toHaveLength(1)
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

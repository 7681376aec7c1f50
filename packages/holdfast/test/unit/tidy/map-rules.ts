import { readdirSync, readFileSync } from 'node:fs'

const mostLines = 250
const mostWords = 40
const mostRecordLines = 60
const mostReadmeLines = 199
/** What a screen shows without scrolling. */
const firstScreen = 30
const parts: readonly string[] = ['Context', 'Decision', 'Consequence']

/** ARCHITECTURE.md is read by everybody who comes, so it stays short. */
export function checkMap(text: string): string[] {
  const findings: string[] = []
  const lines = text.split('\n').length - 1
  if (lines > mostLines)
    findings.push(`ARCHITECTURE.md:1 has ${lines} lines, more than ${mostLines}`)
  const [, glossary = ''] = text.split('\n## Words\n')
  const words = [...glossary.matchAll(/^\| (\*\*.*?) \|/gm)].flatMap(
    ([, cell = '']) => cell.match(/\*\*[^*]+\*\*/g) ?? [],
  )
  if (words.length > mostWords)
    findings.push(`ARCHITECTURE.md:1 explains ${words.length} words, more than ${mostWords}`)
  return findings
}

/** README.md begins with the bug and its fix, and is short enough to be read to its end. */
export function checkReadme(text: string): string[] {
  const findings: string[] = []
  const lines = text.split('\n')
  if (lines.length - 1 > mostReadmeLines)
    findings.push(`README.md:1 has ${lines.length - 1} lines, more than ${mostReadmeLines}`)
  const fences = lines.slice(0, firstScreen).filter((line) => line.startsWith('```'))
  if (fences.join() !== '```ts,```,```diff,```')
    findings.push('README.md:1 does not begin with the bug and, on the same screen, the fix')
  return findings
}

/** The files of docs/decisions by their names. */
export function readRecords(folder: URL): Record<string, string> {
  const names = readdirSync(folder)
  return Object.fromEntries(
    names.map((name) => [name, readFileSync(new URL(name, folder), 'utf8')]),
  )
}

/** Records of decisions are numbered without a gap, say why and what follows, and are found from their index. */
export function checkRecords(files: Readonly<Record<string, string>>): string[] {
  const { 'README.md': index = '', ...records } = files
  return Object.keys(records)
    .toSorted()
    .flatMap((name, at) => {
      const text = records[name] ?? ''
      const number = String(at + 1)
      const headings = [...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)
      if (!name.startsWith(`${number.padStart(4, '0')}-`) || !text.startsWith(`# ${number}. `))
        return [`${name}:1 is not number ${number}`]
      if (headings.join() !== parts.join())
        return [`${name}:1 has not the parts ${parts.join(', ')}`]
      if (!index.includes(`(${name})`)) return [`${name}:1 is not in the index`]
      const lines = text.split('\n').length - 1
      return lines > mostRecordLines
        ? [`${name}:1 has ${lines} lines, more than ${mostRecordLines}`]
        : []
    })
}

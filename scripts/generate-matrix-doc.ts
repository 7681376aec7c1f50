/** Writes the table of docs/what-runs-where.md from a run of what is promised, with every client on every engine. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { engines } from '../packages/holdfast/test/promises/engines.ts'
import { promises } from '../packages/holdfast/test/promises/promises.ts'

type Outcome = readonly [engine: string, client: string, call: string, outcome: 'yes' | 'no']

const folder = mkdtempSync(join(tmpdir(), 'holdfast-matrix-'))
const record = join(folder, 'outcomes')
const projects = ['conformance', 'engines', 'sqlite'].flatMap((each) => ['--project', each])
const { status } = spawnSync('npx', ['vitest', 'run', ...projects, '-t', 'what is promised'], {
  stdio: 'inherit',
  env: { ...process.env, HOLDFAST_PROMISES: record },
})
const outcomes = readFileSync(record, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Outcome)
rmSync(folder, { recursive: true })
if (status !== 0) throw new Error('a promise was not kept: the page stays as it was')

const clientsOf = (engine: string): readonly string[] =>
  [...new Set(outcomes.filter(([on]) => on === engine).map(([, client]) => client))].toSorted()

function cell(engine: string, call: string): string {
  const here = outcomes.filter(([on, , of]) => on === engine && of === call)
  const kept = [...new Set(here.filter(([, , , outcome]) => outcome === 'yes').map(([, by]) => by))]
  if (kept.length === 0) return 'no'
  return kept.length === clientsOf(engine).length ? 'yes' : kept.toSorted().join(', ')
}

const rows = promises.map(({ call, promise }) =>
  ['', `\`${call}\``, promise, ...Object.keys(engines).map((each) => cell(each, call)), '']
    .join(' | ')
    .trim(),
)
const clients = Object.entries(engines).map(
  ([engine, title]) => `- ${title}: ${clientsOf(engine).join(', ')}`,
)
const path = 'docs/what-runs-where.md'
const page = readFileSync(path, 'utf8')
const end = '<!-- end of what docs:matrix writes -->'
const begin = page.indexOf('| call |')
writeFileSync(
  path,
  `${page.slice(0, begin)}| call | what is promised | ${Object.values(engines).join(' | ')} |
| --- | --- |${' --- |'.repeat(Object.keys(engines).length)}
${rows.join('\n')}

Clients that are tried:

${clients.join('\n')}

${page.slice(page.indexOf(end))}`,
)

/** The action for GitHub: what its step does, run by the shell as a job runs it. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { huntUsage } from '../../../src/command/hunt-line.ts'

const path = (from: string): string => fileURLToPath(new URL(from, import.meta.url))
const action = parse(
  readFileSync(path('../../../../../.github/actions/hunt/action.yml'), 'utf8'),
) as {
  readonly inputs: Readonly<Record<string, { readonly default?: string }>>
  readonly runs: {
    readonly steps: readonly [
      { readonly run: string; readonly env: Readonly<Record<string, string>> },
    ]
  }
}
const [step] = action.runs.steps
const hunted = path('../../support/hunted/')
const folder = mkdtempSync(join(tmpdir(), 'race-action-'))
afterAll(() => rmSync(folder, { recursive: true }))

// `npx --no-install holdfast-race …` is the command from the sources.
const npx = join(folder, 'npx')
writeFileSync(
  npx,
  `#!/bin/bash\nexec "${process.execPath}" "${path('../../../src/main.ts')}" "\${@:3}"\n`,
)
chmodSync(npx, 0o755)
const { directUrl: url } = await testDatabase()

/** As the job's runner fills it: inputs into the environment, and nothing into the text of the script. */
async function runAction(
  inputs: Readonly<Record<string, string>>,
  environment: NodeJS.ProcessEnv = {},
): Promise<{
  readonly code: number
  readonly out: string
  readonly outputs: string
  readonly summary: string
}> {
  const output = join(folder, 'output')
  const summary = join(folder, 'summary.md')
  for (const file of [output, summary]) writeFileSync(file, '')
  const filled = Object.entries(step.env).map(([name, text]): [string, string] => {
    const [, input = ''] = /^\$\{\{ inputs\.([\w-]+) \}\}$/.exec(text) ?? []
    return [name, inputs[input] ?? action.inputs[input]?.default ?? '']
  })
  const { VITEST: _, NODE_ENV: __, ...rest } = process.env
  const env = {
    ...rest,
    ...Object.fromEntries(filled),
    PATH: `${folder}:${rest['PATH']}`,
    RUNNER_TEMP: folder,
    GITHUB_ACTIONS: 'true',
    GITHUB_OUTPUT: output,
    GITHUB_STEP_SUMMARY: summary,
    ...environment,
  }
  const { code, out } = await new Promise<{ code: number; out: string }>((resolve) => {
    execFile('bash', ['-e', '-o', 'pipefail', '-c', step.run], { env }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), out: stdout + stderr }),
    )
  })
  const read = (file: string): string => readFileSync(file, 'utf8')
  return { code, out, outputs: read(output), summary: read(summary) }
}

const inputs = {
  command: `node --test ${join(hunted, 'suite-node.ts')}`,
  app: join(hunted, 'app.ts'),
  'database-url': url,
}

test('a race fails the job, stands beside its line and in the summary, and is there for code scanning', async () => {
  const { code, out, outputs, summary } = await runAction(inputs)
  expect(out).toMatch(/^::error file=/m)
  expect(code).toBe(1)
  expect(summary).toContain('## 1 race proven')
  const sarif = /^sarif=(.*)$/m.exec(outputs)?.[1] ?? ''
  expect(JSON.parse(readFileSync(sarif, 'utf8')).runs[0].results).toHaveLength(1)
  expect(outputs).toMatch(/^code=1\njson=.*\nhtml=.*\nsarif=/)
})

test('the control: without the race, and with it in the baseline, the job passes', async () => {
  expect((await runAction(inputs, { COUPONS: 'fixed' })).code).toBe(0)
  const baseline = join(folder, 'races.json')
  const known = { pair: 'POST /coupons × itself', anomaly: 'stale check' }
  writeFileSync(baseline, JSON.stringify({ format: 1, races: [known] }))
  expect((await runAction({ ...inputs, baseline })).code).toBe(0)
})

test('nothing recorded fails the job, unless only races are to', async () => {
  const nothing = { ...inputs, command: 'true' }
  expect((await runAction(nothing)).code).toBe(3)
  expect((await runAction({ ...nothing, 'fail-on': 'races' })).code).toBe(0)
})

test('no input is part of the script, and every flag is one of the command', () => {
  expect(step.run).not.toContain('${{')
  const flags = [...step.run.matchAll(/(?<=[( ])--[a-z-]+/g)].map(([flag]) => flag)
  expect(flags.length).toBeGreaterThan(8)
  const unknown = flags.filter(
    (flag) => flag !== '--no-install' && !huntUsage.includes(`${flag} <`),
  )
  expect(unknown.filter((flag) => flag !== '--write-baseline')).toEqual([])
})

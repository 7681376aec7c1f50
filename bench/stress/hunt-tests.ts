/** The tests that a hunt in the shop writes, run on the shop as it is and on the shop without its races. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startPostgres } from '@holdfast/testkit'
import { racy } from '../../examples/hunted-shop/src/answers.ts'
import type { StressScenario } from '../harness/stress-scenario.ts'

const inRoot = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const race = inRoot('packages/race/src/')
const shop = inRoot('examples/hunted-shop/')

interface Ended {
  readonly code: number
  readonly out: string
}

export const huntTests: StressScenario = {
  about: 'what a hunt writes as tests fails on the races of the shop, and passes without them',
  async run({ progress }) {
    progress('starting PostgreSQL')
    await using server = await startPostgres({ settings: { max_connections: '100' } })
    const folder = mkdtempSync(join(tmpdir(), 'hunt-tests-'))
    const DATABASE_URL = await server.createDatabase()
    try {
      progress('hunting')
      const app = ['--app', join(shop, 'src/app.ts')]
      const write = ['--write-tests', folder, '--runner', 'node', '--seconds', '600']
      const suite = ['node', '--test', join(shop, 'suite/shop.node.ts')]
      await runNode([join(race, 'main.ts'), 'hunt', ...app, ...write, '--', ...suite], {
        DATABASE_URL,
      })
      const files = readdirSync(folder)
      const violations: string[] = []
      if (files.length < racy.length) {
        violations.push(`${files.length} tests were written for ${racy.length} races`)
      }
      const notes: string[] = []
      for (const file of files) {
        const path = join(folder, file)
        writeFileSync(path, fromSource(readFileSync(path, 'utf8')))
        const onRacy = await runNode(['--test', path], { DATABASE_URL })
        const onFixed = await runNode(['--test', path], { DATABASE_URL, SHOP: 'fixed' })
        const isRed = onRacy.code !== 0 && onRacy.out.includes('✗ race in ')
        if (!isRed) violations.push(`${file} does not fail of the race:\n${onRacy.out}`)
        if (onFixed.code !== 0) violations.push(`${file} fails without it:\n${onFixed.out}`)
        progress(
          `${file}: ${isRed ? 'red' : 'not red'}, ${onFixed.code === 0 ? 'green' : 'not green'}`,
        )
        notes.push(file)
      }
      return { operations: files.length * 2, violations, controls: {}, notes }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
}

/** Nothing is built here: our packages are their sources. */
function fromSource(text: string): string {
  return text
    .replace(`'@holdfast/race'`, `'${race}index.ts'`)
    .replace(`'@holdfast/race/hunt'`, `'${race}hunt.ts'`)
}

function runNode(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<Ended> {
  const { NODE_TEST_CONTEXT: _, ...rest } = process.env
  const env = { ...rest, ...environment }
  return new Promise((resolve) => {
    execFile(process.execPath, args, { env, maxBuffer: 2 ** 28 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : 1, out: stdout + stderr })
    })
  })
}

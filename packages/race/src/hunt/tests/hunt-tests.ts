/** Proven races as regression tests: files that run as they stand, fail on the race, and pass once it is gone. */
import { relative, sep } from 'node:path'
import { packageVersion } from '../../core/package-files.ts'
import { harmless } from '../../report/terminal/text.ts'
import type { Heard } from '../record/heard.ts'
import { secretsIn } from './fill-secrets.ts'
import { literal, nameText } from './literal.ts'
import type { Again, HuntedPair, HuntReport } from '../model.ts'

/** For which runner, and where the files will be. */
export interface HuntTestOptions {
  /** The file of the application, as for `--app`. */
  readonly app: string
  /** The folder of the tests; default the current one. */
  readonly folder?: string
  /** What runs them; default `vitest`. */
  readonly runner?: 'vitest' | 'jest' | 'node'
  /** Jest loads the folder as CommonJS; default true. */
  readonly commonJs?: boolean
  /** Where the application found the addresses of other machines; default that of the process. */
  readonly environment?: Readonly<Record<string, string | undefined>>
}

/** One test file. */
export interface HuntTest {
  /** Name of the pair. */
  readonly pair: string
  /** Without its folder. */
  readonly file: string
  /** Empty if it could not be written; see `because`. */
  readonly text: string
  /** Columns in which placeholders stand for values that look like secrets: `public.users.password`. */
  readonly disguised?: readonly string[]
  /** Why there is no test. */
  readonly because?: string
}

/**
 * A regression test for each proven race. It needs nothing of the hunt: the rows, what is sent and what other machines
 * answered are in it, without secrets. It calls `exploreCalls`.
 *
 * @example for (const { file, text } of huntTests(report, { app: 'src/app.ts' })) writeFileSync(file, text)
 */
export function huntTests(report: HuntReport, options: HuntTestOptions): readonly HuntTest[] {
  const taken = new Set<string>()
  return report.pairs
    .filter(({ verdict }) => verdict === 'proven')
    .map((pair): HuntTest => {
      const file = fileOf(pair.name, options, taken)
      try {
        const { disguised = [] } = pair.again ?? {}
        return { pair: pair.name, file, text: textOf(pair, options), disguised }
      } catch (error) {
        const because = error instanceof Error ? error.message : String(error)
        return { pair: pair.name, file, text: '', because }
      }
    })
}

const endings = { vitest: 'test.ts', jest: 'test.js', node: 'test.mjs' } as const

function fileOf(pair: string, { runner = 'vitest' }: HuntTestOptions, taken: Set<string>): string {
  const words = pair.replaceAll('×', 'x').toLowerCase()
  const base = words
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 80)
  let name = base
  for (let n = 2; taken.has(name); n += 1) name = `${base}-${n}`
  taken.add(name)
  return `${name}.${endings[runner]}`
}

function textOf(pair: HuntedPair, options: HuntTestOptions): string {
  const { name, calls, again } = pair
  if (again === undefined) throw new Error('its rows are not known')
  const { inputs, sentence } = again
  const { environment = process.env, runner = 'vitest' } = options
  const secrets = [...new Set(inputs.flatMap(secretsIn))]
  const addresses = addressesIn(environment, again.heard)
  const fields = [
    `name: ${literal(name)},`,
    `url: process.env['DATABASE_URL'], // a database for tests, directly and not through a pooler`,
    `app: ${appText(options)},`,
    'calls: [',
    ...inputs.map((input, at) => {
      const name = calls[at] ?? ''
      const { [name]: refused = [] } = again.refused
      const rules = refused.length === 0 ? '' : `, refused: ${literal(refused)}`
      return `  { name: ${literal(name)}, input: ${literal(input)}${rules} },`
    }),
    '],',
    ...(secrets.length === 0
      ? []
      : [
          '// They are not written down: set these variables, or sign in here.',
          'secrets: {',
          ...secrets.map((one) => {
            const { [one]: known } = again.secrets
            const or = known === undefined ? '' : ` ?? ${literal(known)}`
            return `  ${nameText(one)}: process.env['${variableOf(one)}']${or},`
          }),
          '},',
        ]),
    ...(addresses.length === 0 ? [] : [`environment: ${literal(Object.fromEntries(addresses))},`]),
    ...(again.heard.length === 0
      ? []
      : [
          '// What other machines have answered: nothing is sent to them.',
          'heard: [',
          ...again.heard.map((one) => `  ${literal(one)},`),
          '],',
        ]),
    ...(again.functions === 'atomic'
      ? [`functions: 'atomic', // what they run inside is proven in another way`]
      : []),
    ...disguisedText(again),
    ...rowsText(again),
  ]
  return [
    '/**',
    ...comment(sentence),
    ' *',
    ` * Made by hunt of @holdfast/race ${packageVersion()}: it runs both calls at once, from the rows below, in every order`,
    ' * that can differ. The application and the database have to be as for the hunt.',
    ' */',
    ...head(options),
    '',
    ...called(runner, name, [
      'const report = await exploreCalls({',
      ...fields.map((line) => `  ${line}`),
      '})',
      'assertRaceFree(report)',
    ]),
    '',
  ].join('\n')
}

function head({ runner = 'vitest', commonJs = true }: HuntTestOptions): string[] {
  if (runner === 'jest' && commonJs) {
    return [
      `const { join } = require('node:path')`,
      `const { assertRaceFree } = require('@holdfast/race')`,
      `const { exploreCalls } = require('@holdfast/race/hunt')`,
    ]
  }
  return [
    ...(runner === 'vitest' ? [`import { test } from 'vitest'`] : []),
    ...(runner === 'node' ? [`import { test } from 'node:test'`] : []),
    `import { assertRaceFree } from '@holdfast/race'`,
    `import { exploreCalls } from '@holdfast/race/hunt'`,
  ]
}

/** More than an exploration may take. */
const timeoutMs = '120_000'

function called(
  runner: NonNullable<HuntTestOptions['runner']>,
  name: string,
  body: readonly string[],
): string[] {
  const inside = body.map((line) => `  ${line}`)
  return runner === 'jest'
    ? [`test(${literal(name)}, async () => {`, ...inside, `}, ${timeoutMs})`]
    : [`test(${literal(name)}, { timeout: ${timeoutMs} }, async () => {`, ...inside, '})']
}

function appText({ app, folder = '.', runner, commonJs = true }: HuntTestOptions): string {
  const path = relative(folder, app).split(sep).join('/')
  const from = literal(path.startsWith('.') ? path : `./${path}`)
  return runner === 'jest' && commonJs
    ? `join(__dirname, ${from})`
    : `new URL(${from}, import.meta.url)`
}

/** What tells which migrations were run is not put back to what it was. */
const ofMigrations =
  /migrations?"?$|migrations?_lock"?$|sequelizemeta"?$|databasechangelog(?:lock)?"?$/i

function disguisedText({ disguised }: Again): string[] {
  if (disguised.length === 0) return []
  return [
    `// Placeholders stand for the values of ${disguised.join(', ')}.`,
    '// If a call needs what was there, such as the hash of a password, write one that is made for this test.',
  ]
}

function rowsText({ rows: { tables, sequences } }: Again): string[] {
  return [
    '// The rows before both. A column that is added gets its default; delete what has nothing to do with the calls.',
    'rows: {',
    '  tables: {',
    ...Object.entries(tables)
      .filter(([table]) => !ofMigrations.test(table))
      .flatMap(([table, { columns, rows }]) =>
        rows.length === 0
          ? [`    ${literal(table)}: { columns: [], rows: [] },`]
          : [
              `    ${literal(table)}: {`,
              `      columns: ${literal(columns)},`,
              '      rows: [',
              ...rows.map((row) => `        ${literal(row)},`),
              '      ],',
              '    },',
            ],
      ),
    '  },',
    `  sequences: {`,
    ...Object.entries(sequences).map(([name, place]) => `    ${literal(name)}: ${literal(place)},`),
    '  },',
    '},',
  ]
}

function variableOf(name: string): string {
  return `RACE_TEST_${name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')}`
}

/** Variables with the address of a machine that was asked. One with a password in it is not written down. */
function addressesIn(
  environment: Readonly<Record<string, string | undefined>>,
  heard: readonly Heard[],
): [string, string][] {
  const asked = new Set(heard.map(({ url }) => new URL(url).origin))
  return Object.entries(environment).flatMap(([name, value]): [string, string][] => {
    if (value === undefined || !/^https?:/.test(value) || !URL.canParse(value)) return []
    const { origin, username, password, search } = new URL(value)
    return asked.has(origin) && username + password + search === '' ? [[name, value]] : []
  })
}

function comment(text: string): string[] {
  const words = harmless(text).replaceAll('*/', '* /').replaceAll(/\s+/g, ' ')
  return [` * ${words}`]
}

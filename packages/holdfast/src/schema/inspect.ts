import type { Driver, Transaction } from '../core/driver.ts'
import { quoteIdentifier } from '../engines/postgres/sql/identifier.ts'
import { type Difference, fixOf } from '../engines/postgres/schema/fixes.ts'
import {
  forgetFile,
  type InstalledFile,
  lookForSchema,
  readRecords,
  recordsFrom,
} from '../engines/postgres/schema/records.ts'
import { retired } from '../engines/postgres/schema/retired.ts'
import { objectsIn } from '../engines/postgres/schema/script.ts'
import {
  type Catalogue,
  describeSchema,
  differences,
  expectedOn,
  ownCatalogue,
} from './catalogue.ts'
import type { Finding, FindingCode } from './finding.ts'
import { roleName } from './grants.ts'
import { inspectMonths } from './inspect-months.ts'
import { inspectOwners } from './inspect-owners.ts'
import { inspectPrivileges } from './inspect-privileges.ts'
import { ownFiles, type SchemaFiles } from './schema-files.ts'
import { schemaName } from './schema-name.ts'
import { changedMigrations, leftoverOf, newerThan } from './steps.ts'
import { isTrue } from '../core/is-true.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

/** What is looked at. */
export interface InspectOptions {
  /** @defaultValue 'holdfast' */
  readonly schema?: string
  /** The application's role: its privileges are checked as well. */
  readonly role?: string
}

const inspectOptions: KnownOptions<InspectOptions> = {
  schema: 'text',
  role: 'text',
}

/**
 * Compares a database with what this version expects of it: files, tables, columns, constraints,
 * indexes, functions, views, triggers and privileges. An empty list means that all is well. Changes
 * nothing.
 *
 * @example const findings = await inspect(fromPg(pool), { role: 'app' })
 * @throws OPTION_INVALID
 */
export async function inspect<Tx>(
  driver: Driver<Tx>,
  options: InspectOptions = {},
): Promise<readonly Finding[]> {
  assertDriver(driver, 'inspect')
  const asked = optionsGiven(options, inspectOptions)
  return inspectFiles(driver, ownFiles(), ownCatalogue(), asked)
}

/** `inspect` with any set of files. */
export async function inspectFiles<Tx>(
  driver: Driver<Tx>,
  files: SchemaFiles,
  catalogue: Catalogue,
  { schema: asked, role }: InspectOptions = {},
): Promise<readonly Finding[]> {
  const schema = schemaName(asked)
  if (role !== undefined) roleName(role)
  return driver.transaction(
    async (transaction) => {
      const [found] = await transaction.query(lookForSchema(schema))
      if (!isTrue(found?.['recorded'])) return [notInstalled]
      const installed = recordsFrom(await transaction.query(readRecords(schema)))
      const about = inspectRecords(files, installed, schema)
      // The catalogue describes these very files; with others every line would be a finding.
      const comparable = !about.some(({ code }) => code === 'file-missing' || code === 'file-newer')
      const objects = comparable ? await inspectObjects(transaction, files, catalogue, schema) : []
      return [
        ...about,
        ...objects,
        ...(await inspectMonths(transaction, schema)),
        ...(await inspectOwners(transaction, schema, role)),
        ...(await inspectPrivileges(transaction, files, schema, role)),
      ]
    },
    // One snapshot: nothing can be dropped between two looks.
    { isolation: 'repeatable read', scopes: [] },
  )
}

const notInstalled: Finding = {
  code: 'schema-missing',
  object: 'schema',
  what: 'Holdfast is not installed in this schema.',
  fix: 'Run `holdfast migrate`, or pass the name of the schema it was installed in.',
}

function inspectRecords(
  files: SchemaFiles,
  installed: readonly InstalledFile[],
  schema: string,
): Finding[] {
  const recorded = new Map(installed.map(({ name, checksum }) => [name, checksum]))
  const newer = newerThan(files, installed)
  const behind = [...files.migrations, ...files.repeatables]
    .map(({ name, checksum }) => ({ name, checksum, was: recorded.get(name) }))
    .filter(({ name, was }) => was === undefined || !name.startsWith('migrations/'))
    .filter(({ name, checksum, was }) => was !== checksum && !newer.includes(name))
  return [
    ...behind.map(({ name, was }) => ({
      code: 'file-missing' as const,
      object: name,
      what: was === undefined ? 'was not applied.' : 'was applied in an earlier form.',
      fix: 'Run `holdfast migrate`.',
    })),
    ...newer.map((object) => ({
      code: 'file-newer' as const,
      object,
      what: 'was applied by a later version of Holdfast than this one.',
      fix: 'Install that version here as well.',
    })),
    ...changedMigrations(files, installed).map((object) => ({
      code: 'file-changed' as const,
      object,
      what: 'was applied with another text than this version has (its checksum differs).',
      fix: 'Install the released package again: its migrations never change.',
    })),
    ...leftoverOf(files, installed).map((object) => ({
      code: 'file-leftover' as const,
      object,
      what: 'belongs to an earlier version of Holdfast; if its object is still there, it is listed too.',
      fix: `${forgetFile(schema, object)};`,
    })),
  ]
}

async function inspectObjects<Tx>(
  transaction: Transaction<Tx>,
  files: SchemaFiles,
  catalogue: Catalogue,
  schema: string,
): Promise<Finding[]> {
  const { major, objects } = await describeSchema(transaction, schema)
  const expected = expectedOn(catalogue, major)
  return differences(expected, objects, catalogue.versions.includes(major)).flatMap((difference) =>
    findingsOf(difference, files, schema),
  )
}

/** Facts that are the owner's to choose: `rate-limit.md` offers to keep the counts out of the log. */
const chosen: ReadonlySet<string> = new Set(['table rate_limit unlogged'])

/** Facts that have a code of their own, since they are holes and not just changes. */
const ownCodes: Readonly<Record<string, FindingCode>> = {
  'function securityDefiner': 'function-security',
  'function searchPath': 'function-search-path',
  'index invalid': 'index-invalid',
  'constraint invalid': 'index-invalid',
  'trigger disabled': 'trigger-disabled',
}

function findingsOf(whole: Difference, files: SchemaFiles, schema: string): Finding[] {
  const { object, expected, found } = whole
  const changed = whole.changed.filter(
    (fact) => !chosen.has(`${object.kind} ${object.name} ${fact}`),
  )
  const name = [object.of, object.name].filter((part) => part !== '').join('.')
  const finding = (code: FindingCode, what: string, part = whole): Finding => ({
    code,
    object: `${object.kind} ${name}`,
    what,
    fix: fixFor(part, files, schema),
  })
  if (found === undefined) return [finding(`${object.kind}-missing`, 'is missing.')]
  if (expected === undefined) {
    if (object.kind === 'function' && retired.has(name)) return []
    return [
      found['copy'] === 'yes'
        ? finding('trigger-disabled', 'is turned off on this partition.')
        : finding(`${object.kind}-extra`, 'is not part of Holdfast.'),
    ]
  }
  const named = changed.filter((fact) => ownCodes[`${object.kind} ${fact}`] !== undefined)
  const others = changed.filter((fact) => !named.includes(fact))
  return [
    ...named.map((fact) =>
      finding(ownCodes[`${object.kind} ${fact}`] as FindingCode, told(whole, [fact], schema), {
        ...whole,
        changed: [fact],
      }),
    ),
    ...(others.length === 0
      ? []
      : [
          finding(`${object.kind}-changed`, told(whole, others, schema), {
            ...whole,
            changed: others,
          }),
        ]),
  ]
}

/** Facts that only a machine reads. */
const digests: ReadonlySet<string> = new Set(['function body', 'view definition'])

function told(
  { object, expected, found }: Difference,
  facts: readonly string[],
  schema: string,
): string {
  const parts = facts.map((fact) =>
    digests.has(`${object.kind} ${fact}`)
      ? `${fact} is not the one of this version`
      : `${fact} is ${found?.[fact] ?? 'none'}, expected ${expected?.[fact] ?? 'none'}`,
  )
  return `${parts.join('; ').replaceAll(':"schema"', () => quoteIdentifier(schema))}.`
}

/** A function of a migration is not created again by a repair. */
function fixFor(difference: Difference, files: SchemaFiles, schema: string): string {
  const { kind, name } = difference.object
  if (kind !== 'function' || difference.expected === undefined) return fixOf(difference, schema)
  const bare = name.slice(0, name.indexOf('('))
  const source = files.migrations.find(({ text }) =>
    objectsIn(text).some((created) => created.kind === 'function' && created.name === bare),
  )
  const repeatable = files.repeatables.some(({ text }) =>
    objectsIn(text).some((created) => created.name === bare),
  )
  return repeatable || source === undefined
    ? fixOf(difference, schema)
    : `Run the CREATE FUNCTION of ${source.name} once more (\`holdfast plan\` prints it), with OR REPLACE.`
}

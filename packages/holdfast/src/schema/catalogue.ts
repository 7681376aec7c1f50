import type { Transaction } from '../core/driver.ts'
import {
  type CatalogueObject,
  fixDescriptions,
  keyOf,
  objectsFrom,
  readObjects,
  serverMajor,
} from '../engines/postgres/schema/catalogue.ts'
import type { Difference } from '../engines/postgres/schema/fixes.ts'
import { catalogueText } from './package-files.ts'

/** What a fresh installation looks like; written by `npm run schema:snapshot`. */
export interface Catalogue {
  /** Major versions of PostgreSQL it was seen on. */
  readonly versions: readonly number[]
  /** With the facts that are the same on all of them. */
  readonly objects: readonly CatalogueObject[]
  /** The facts that PostgreSQL words differently, by major version. */
  readonly byVersion: Readonly<Record<string, readonly CatalogueObject[]>>
}

/** A schema as it was found. */
export interface FoundObjects {
  readonly major: number
  readonly objects: readonly CatalogueObject[]
}

let read: Catalogue | undefined

/** The catalogue of this version's files, from the package's `sql/` folder. */
export function ownCatalogue(): Catalogue {
  read ??= JSON.parse(catalogueText()) as Catalogue
  return read
}

/** Describes a schema. Changes settings of the transaction. */
export async function describeSchema<Tx>(
  transaction: Transaction<Tx>,
  schema: string,
): Promise<FoundObjects> {
  const [server] = await transaction.query(serverMajor)
  await transaction.query(fixDescriptions(schema))
  const objects = objectsFrom(await transaction.query(readObjects(schema)))
  return { major: Number(server?.['major']), objects }
}

/** The wording of definitions is known only of versions that were looked at. */
const worded: ReadonlySet<string> = new Set(['definition'])

/** What is expected on a server of this version. */
export function expectedOn(
  { versions, objects, byVersion }: Catalogue,
  major: number,
): readonly CatalogueObject[] {
  const known = versions.includes(major)
  const own = new Map(
    (byVersion[String(major)] ?? []).map((object) => [keyOf(object), object.facts]),
  )
  return objects.map((object) => ({
    ...object,
    facts: known ? { ...object.facts, ...own.get(keyOf(object)) } : withoutWording(object.facts),
  }))
}

/**
 * What differs. A further index does no harm unless it is unique, and what belongs to a table that
 * is missing or not ours goes without saying.
 */
export function differences(
  expected: readonly CatalogueObject[],
  found: readonly CatalogueObject[],
  comparesWording: boolean,
): Difference[] {
  const wanted = new Map(expected.map((object) => [keyOf(object), object]))
  const present = new Map(found.map((object) => [keyOf(object), object]))
  const onlyIn = (
    some: ReadonlyMap<string, CatalogueObject>,
    others: ReadonlyMap<string, CatalogueObject>,
  ): CatalogueObject[] => [...some].filter(([key]) => !others.has(key)).map(([, object]) => object)
  const missing = onlyIn(wanted, present)
  const extra = onlyIn(present, wanted).filter(
    ({ kind, facts }) => kind !== 'index' || facts['unique'] === 'yes',
  )
  const whole = new Set([...missing, ...extra].filter(isTable).map(({ name }) => name))
  const parts = (objects: readonly CatalogueObject[]): CatalogueObject[] =>
    objects.filter(({ of }) => !whole.has(of))
  return [
    ...parts(missing).map((object) => difference(object, object.facts, undefined, [])),
    ...expected.flatMap((object) => {
      const facts = present.get(keyOf(object))?.facts
      if (facts === undefined) return []
      const seen = comparesWording ? facts : withoutWording(facts)
      const changed = [...new Set([...Object.keys(object.facts), ...Object.keys(seen)])].filter(
        (fact) => object.facts[fact] !== seen[fact],
      )
      return changed.length === 0 ? [] : [difference(object, object.facts, seen, changed)]
    }),
    ...parts(extra).map((object) => difference(object, undefined, object.facts, [])),
  ]
}

function difference(
  { kind, of, name }: CatalogueObject,
  expected: Difference['expected'],
  found: Difference['found'],
  changed: readonly string[],
): Difference {
  return { object: { kind, of, name }, expected, found, changed }
}

function isTable({ kind }: CatalogueObject): boolean {
  return kind === 'table'
}

function withoutWording(facts: CatalogueObject['facts']): CatalogueObject['facts'] {
  return Object.fromEntries(Object.entries(facts).filter(([fact]) => !worded.has(fact)))
}

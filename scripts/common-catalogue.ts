import { hash } from 'node:crypto'
import {
  type CatalogueObject,
  keyOf,
} from '../packages/holdfast/src/engines/postgres/schema/catalogue.ts'
import type { Catalogue, FoundObjects } from '../packages/holdfast/src/schema/catalogue.ts'
import type { SchemaFiles } from '../packages/holdfast/src/schema/schema-files.ts'

/** Names and contents of all files: tells without a server whether a snapshot is of today. */
export function filesDigest({ migrations, repeatables }: SchemaFiles): string {
  const list = [...migrations, ...repeatables].map(({ name, checksum }) => `${name} ${checksum}`)
  return hash('sha256', list.join('\n'))
}

/**
 * One catalogue of what several versions of PostgreSQL say about the same schema: what they agree
 * on, and what each says in its own words. The objects themselves must be the same everywhere.
 */
export function commonCatalogue(seen: readonly FoundObjects[]): Catalogue {
  const [first, ...others] = seen as [FoundObjects, ...FoundObjects[]]
  const keys = (found: FoundObjects): string => found.objects.map(keyOf).join('\n')
  const odd = others.find((found) => keys(found) !== keys(first))
  if (odd !== undefined) {
    throw new Error(`PostgreSQL ${odd.major} has other objects than ${first.major}`)
  }
  const agreed = (at: number): ReadonlySet<string> => {
    const facts = seen.map(({ objects }) => objects[at]?.facts ?? {})
    const names = new Set(facts.flatMap((some) => Object.keys(some)))
    return new Set([...names].filter((name) => new Set(facts.map((some) => some[name])).size === 1))
  }
  const pick = (object: CatalogueObject, wanted: (fact: string) => boolean): CatalogueObject => ({
    ...object,
    facts: Object.fromEntries(Object.entries(object.facts).filter(([fact]) => wanted(fact))),
  })
  return {
    versions: seen.map(({ major }) => major),
    objects: first.objects.map((object, at) => pick(object, (fact) => agreed(at).has(fact))),
    byVersion: Object.fromEntries(
      seen.map(({ major, objects }) => [
        major,
        objects
          .map((object, at) => pick(object, (fact) => !agreed(at).has(fact)))
          .filter(({ facts }) => Object.keys(facts).length > 0),
      ]),
    ),
  }
}

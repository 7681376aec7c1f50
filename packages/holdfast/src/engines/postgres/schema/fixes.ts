import { quoteIdentifier, tableText } from '../sql/identifier.ts'
import type { CatalogueObject } from './catalogue.ts'

/** An object that is not as it should be. */
export interface Difference {
  readonly object: Omit<CatalogueObject, 'facts'>
  /** `undefined`: it should not be there. */
  readonly expected: CatalogueObject['facts'] | undefined
  /** `undefined`: it is missing. */
  readonly found: CatalogueObject['facts'] | undefined
  /** Names of the facts that differ. */
  readonly changed: readonly string[]
}

const repair = 'Run `holdfast migrate --repair`, which creates every function and view again.'
const restore =
  'Restore it from a backup. If the schema holds nothing of value, drop it and run `holdfast migrate`.'

/** How to put one object right: SQL where that is possible, else a sentence. */
export function fixOf(difference: Difference, schema: string): string {
  const statements = statementsFor(difference, schema)
  return typeof statements === 'string' ? statements : `${statements.join('; ')};`
}

function statementsFor(difference: Difference, schema: string): string | string[] {
  const { object, expected, found } = difference
  const table = tableText({ schema, table: object.of === '' ? object.name : object.of })
  const name = quoteIdentifier(object.name)
  // Descriptions of the catalogue name the schema's objects without the schema.
  const here = `SET search_path = ${quoteIdentifier(schema)}, pg_temp`
  switch (object.kind) {
    case 'column':
      return fixColumn(difference, table, name)
    case 'constraint': {
      const alter = `ALTER TABLE ${table}`
      const drop = found === undefined ? [] : [`${alter} DROP CONSTRAINT ${name}`]
      if (expected === undefined) return drop
      if (found?.['definition'] === `${expected['definition']} NOT VALID`) {
        return [`${alter} VALIDATE CONSTRAINT ${name}`]
      }
      if (isOnly(difference, 'invalid')) return [`REINDEX INDEX ${quoteIdentifier(schema)}.${name}`]
      return [here, ...drop, `${alter} ADD CONSTRAINT ${name} ${expected['definition']}`]
    }
    case 'index': {
      const full = `${quoteIdentifier(schema)}.${name}`
      if (expected === undefined) return [`DROP INDEX ${full}`]
      if (isOnly(difference, 'invalid')) return [`REINDEX INDEX ${full}`]
      const create = `CREATE ${expected['unique'] === 'yes' ? 'UNIQUE ' : ''}INDEX ${name} ON ${table} ${expected['definition']}`
      return [here, ...(found === undefined ? [] : [`DROP INDEX ${full}`]), create]
    }
    case 'trigger': {
      if (
        found !== undefined &&
        (expected === undefined ? found['copy'] === 'yes' : isOnly(difference, 'disabled'))
      ) {
        return [`ALTER TABLE ${table} ENABLE TRIGGER ${name}`]
      }
      const drop = found === undefined ? [] : [`DROP TRIGGER ${name} ON ${table}`]
      return expected === undefined ? drop : [here, ...drop, expected['definition'] as string]
    }
    case 'rule':
      return expected === undefined ? [`DROP RULE ${name} ON ${table}`] : restore
    case 'function':
      return expected === undefined
        ? [`DROP ROUTINE ${quoteIdentifier(schema)}.${signatureText(object.name)}`]
        : repair
    case 'view':
      if (expected === undefined) return [`DROP VIEW ${table}`]
      return found !== undefined && difference.changed.includes('columns')
        ? `DROP VIEW ${table}; then run \`holdfast migrate --repair\`, and what \`holdfast grants\` prints.`
        : repair
    case 'table':
      return fixTable(difference, table)
    case 'sequence':
    case 'type':
      return expected === undefined ? [`DROP ${object.kind.toUpperCase()} ${table}`] : restore
  }
}

function fixTable({ expected, found, changed }: Difference, table: string): string | string[] {
  if (expected === undefined) return [`DROP TABLE ${table}`]
  if (found === undefined) return restore
  const fixes: Record<string, string[]> = {
    unlogged: [`ALTER TABLE ${table} SET ${expected['unlogged'] === 'yes' ? 'UN' : ''}LOGGED`],
    rowSecurity: ['DISABLE', 'NO FORCE'].map(
      (verb) => `ALTER TABLE ${table} ${verb} ROW LEVEL SECURITY`,
    ),
  }
  const known = changed.flatMap((fact) => fixes[fact] ?? [])
  return changed.every((fact) => Object.hasOwn(fixes, fact)) ? known : restore
}

function fixColumn(
  { expected, found, changed }: Difference,
  table: string,
  name: string,
): string | string[] {
  const alter = `ALTER TABLE ${table}`
  if (expected === undefined) return [`${alter} DROP COLUMN ${name}`]
  const { type, default: value, notNull, collation, generated, identity } = expected
  if (generated !== undefined || identity !== undefined || collation !== undefined) return restore
  if (found === undefined) {
    const parts = [type, value && `DEFAULT ${value}`, notNull && 'NOT NULL']
    return [`${alter} ADD COLUMN ${name} ${parts.filter(Boolean).join(' ')}`]
  }
  const column = `${alter} ALTER COLUMN ${name}`
  const fixes: Record<string, string> = {
    type: `${column} TYPE ${type}`,
    default: value === undefined ? `${column} DROP DEFAULT` : `${column} SET DEFAULT ${value}`,
    notNull: `${column} ${notNull === 'yes' ? 'SET' : 'DROP'} NOT NULL`,
    collation: `${column} TYPE ${type}`,
    generated: `${column} DROP EXPRESSION`,
    identity: `${column} DROP IDENTITY`,
  }
  return changed.flatMap((fact) => fixes[fact] ?? [])
}

/** `name(types)` with the name quoted; types come from the server and are SQL already. */
function signatureText(signature: string): string {
  const open = signature.indexOf('(')
  return `${quoteIdentifier(signature.slice(0, open))}${signature.slice(open)}`
}

function isOnly({ changed }: Difference, fact: string): boolean {
  return changed.length === 1 && changed[0] === fact
}

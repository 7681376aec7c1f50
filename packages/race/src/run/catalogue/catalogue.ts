import {
  type CalledRow,
  calledText,
  type CodeRow,
  codeText,
  type ColumnRow,
  columnsText,
  type ForeignKeyRow,
  foreignKeysText,
  indexesText,
  type RelationRow,
  relationsText,
  routinesText,
  stampText,
  type UniqueRow,
  uniquesText,
} from './catalogue-text.ts'
import type { Control } from '../connection/control.ts'
import { type Open, readOpen } from './open-functions.ts'
import type { Routine } from '../statement/routine.ts'
import { families, type Family } from '../statement/row-condition.ts'

/**
 * What has to be known about a table to tell what a statement on it touches. A partitioned table and
 * its partitions are one: what is so of one of them counts for all.
 */
export interface Relation {
  readonly schema: string
  readonly name: string
  readonly kind: 'table' | 'sequence' | 'other'
  /** Its name for footprints: of a partition the one of the partitioned table. */
  readonly object: string
  /** Seen by its session only. */
  readonly temporary: boolean
  /** Triggers, rules, policies, heirs, or functions of the user's in defaults and constraints. */
  readonly active: boolean
  /** Rules, policies, heirs, or a view: a query on it reads what it does not name. */
  readonly indirect: boolean
  /** A table of another server, or a view of a sequence, of one of those, or of what sessions do at this moment. */
  readonly far: boolean
  /** Code of the user's that a statement on it runs. */
  readonly calls: readonly CalledRow[]
  /** Objects that its foreign keys refer to. */
  readonly parents: ReadonlySet<string>
  /** Columns that foreign keys of others refer to. */
  readonly referenced: ReadonlySet<string>
  /** What a change of the rows that others refer to may touch, by foreign keys alone. */
  readonly reach: Reach
  /** Constraints or triggers that may wait until the commit. */
  readonly deferred: boolean
  /** Columns of each unique index; empty for an exclusion constraint or an expression. */
  readonly uniques: readonly (readonly string[])[]
  /** Columns that decide whether a row meets another in a unique index or an exclusion constraint. */
  readonly guarded: ReadonlySet<string>
  /** Columns that together name one row; the primary key first. */
  readonly keys: readonly (readonly string[])[]
  /** In their order; without a family where equal values may be written differently. */
  readonly columns: ReadonlyMap<string, Family | undefined>
  /** Columns whose default cannot repeat: from a sequence (with its object id), or random. */
  readonly generated: ReadonlyMap<string, number | 'random'>
}

/** Tables beyond a foreign key, from child to child as far as a cascade can go. */
export interface Reach {
  /** Looked at or changed. */
  readonly touched: ReadonlySet<string>
  readonly written: ReadonlySet<string>
  /** Tables that changed rows refer to: it is looked there whether the row is there. */
  readonly checked: ReadonlySet<string>
  /** One of them has triggers or rules, so that nobody knows how far it goes. */
  readonly active: boolean
}

export interface Catalogue {
  /** Changes when tables are made, dropped or altered. */
  readonly stamp: string
  readonly relations: ReadonlyMap<number, Relation>
  /** Tables by bare name; several schemas may have one of the name. */
  readonly named: ReadonlyMap<string, readonly Relation[]>
  /** Names of the user's functions, of those that look like columns, and of operators. */
  readonly code: Readonly<Record<CodeRow['kind'], ReadonlySet<string>>>
  /** What is not written in C, by bare name. */
  readonly routines: ReadonlyMap<string, readonly Routine[]>
  /** Functions and views of what is not under control. */
  readonly open: Pick<Open, 'functions' | 'views'>
  /** Object ids of indexes, whose locks say nothing that their tables' do not. */
  readonly ignored: ReadonlySet<number>
}

export async function readStamp(control: Control): Promise<string> {
  const { rows } = await control.client.query<{ stamp: string }>({
    name: 'holdfast_race_stamp',
    text: stampText,
  })
  return rows[0]?.stamp ?? ''
}

export async function readCatalogue(control: Control): Promise<Catalogue> {
  const stamp = await readStamp(control)
  const { client } = control
  const { rows } = await client.query<RelationRow>(relationsText)
  const foreignKeys = (await client.query<ForeignKeyRow>(foreignKeysText)).rows
  const uniques = (await client.query<UniqueRow>(uniquesText)).rows
  const columns = (await client.query<ColumnRow>(columnsText)).rows
  const code = (await client.query<CodeRow>(codeText)).rows
  const open = await readOpen(client)
  const called = [...(await client.query<CalledRow>(calledText)).rows, ...open.uses]
  const routines = (await client.query<Routine>(routinesText)).rows
  const indexes = (await client.query<{ oid: string }>(indexesText)).rows

  const objects = new Map(rows.map(({ oid, object }) => [oid, object]))
  const objectOf = (oid: string): string => objects.get(oid) ?? ''
  const facts: Facts = {
    // Under one name: a partitioned table with its partitions.
    family: Map.groupBy(rows, ({ object }) => object),
    byChild: Map.groupBy(foreignKeys, ({ child }) => objectOf(child)),
    byParent: Map.groupBy(foreignKeys, ({ parent }) => objectOf(parent)),
    uniques: Map.groupBy(uniques, ({ relation }) => objectOf(relation)),
    columns: Map.groupBy(columns, ({ relation }) => relation),
    called: Map.groupBy(called, ({ relation }) => objectOf(relation)),
    objectOf,
  }
  const byOid = new Map(rows.map((row) => [Number(row.oid), relationOf(row, facts)]))
  const namesOf = (kind: CodeRow['kind']): ReadonlySet<string> =>
    new Set(code.filter((one) => one.kind === kind).map(({ name }) => name))
  return {
    stamp,
    relations: byOid,
    named: Map.groupBy(byOid.values(), ({ name }) => name),
    code: {
      function: namesOf('function'),
      attribute: namesOf('attribute'),
      operator: namesOf('operator'),
      conversion: namesOf('conversion'),
      event: namesOf('event'),
    },
    routines: Map.groupBy(routines, ({ name }) => name),
    open,
    ignored: new Set(indexes.map(({ oid }) => Number(oid))),
  }
}

/** Rows of the catalogue by the objects that they are about; columns by object id. */
interface Facts {
  readonly family: ReadonlyMap<string, readonly RelationRow[]>
  readonly byChild: ReadonlyMap<string, readonly ForeignKeyRow[]>
  readonly byParent: ReadonlyMap<string, readonly ForeignKeyRow[]>
  readonly uniques: ReadonlyMap<string, readonly UniqueRow[]>
  readonly columns: ReadonlyMap<string, readonly ColumnRow[]>
  readonly called: ReadonlyMap<string, readonly CalledRow[]>
  objectOf(oid: string): string
}

function relationOf(row: RelationRow, facts: Facts): Relation {
  const { object, schema, name, temporary } = row
  const family = facts.family.get(object) ?? []
  const columns = facts.columns.get(row.oid) ?? []
  const uniques = facts.uniques.get(object) ?? []
  const guarded = new Set(uniques.flatMap(({ depends }) => depends))
  const computed = columns.some((one) => one.computed && guarded.has(one.column))
  return {
    schema,
    name,
    kind: temporary ? 'other' : (kinds[row.kind] ?? 'other'),
    object,
    temporary,
    active: family.some(({ active }) => active),
    indirect: family.some((one) => one.indirect),
    far: row.far,
    calls: facts.called.get(object) ?? [],
    deferred: family.some(({ deferred }) => deferred),
    parents: parentsOf(object, facts),
    referenced: new Set(facts.byParent.get(object)?.flatMap((key) => key.columns)),
    reach: reachOf(object, facts),
    uniques: uniques.map((unique) => unique.columns),
    // A computed column may change with any other.
    guarded: computed ? new Set(columns.map(({ column }) => column)) : guarded,
    keys: uniques.filter(({ key }) => key).map((unique) => unique.columns),
    columns: new Map(columns.map(({ column, type }) => [column, families.get(type ?? '')])),
    generated: new Map(
      columns
        .filter(({ sequence, random }) => sequence || random)
        .map(({ column, sequence }) => [column, sequence ? Number(sequence) : 'random']),
    ),
  }
}

function parentsOf(object: string, facts: Facts): ReadonlySet<string> {
  return new Set(facts.byChild.get(object)?.map(({ parent }) => facts.objectOf(parent)))
}

function reachOf(object: string, facts: Facts): Reach {
  const touched = new Set<string>()
  const written = new Set<string>()
  const checked = new Set<string>()
  const open = [object]
  for (let from = open.pop(); from !== undefined; from = open.pop()) {
    for (const { child, acts, sets } of facts.byParent.get(from) ?? []) {
      const reached = facts.objectOf(child)
      touched.add(reached)
      if (sets) for (const parent of parentsOf(reached, facts)) checked.add(parent)
      if (!acts || written.has(reached)) continue
      written.add(reached)
      open.push(reached)
    }
  }
  return {
    touched,
    written,
    checked,
    active: [...written].some((child) => facts.family.get(child)?.some(({ active }) => active)),
  }
}

const kinds: Readonly<Record<string, Relation['kind']>> = {
  r: 'table',
  p: 'table',
  m: 'table',
  f: 'table',
  S: 'sequence',
}

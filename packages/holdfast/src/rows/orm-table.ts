import type { Driver } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import type { TableName } from '../core/table-name.ts'
import type { RowTarget } from './engine.ts'

/** A table of Drizzle, as `pgTable()` makes it. */
export interface DrizzleTable {
  readonly $inferSelect: object
}

/** An entity of TypeORM, as `dataSource.getMetadata(Account)` describes it. */
export interface TypeOrmTable {
  readonly tableName: string
  readonly schema?: string | undefined
  readonly primaryColumns: readonly { readonly databaseName: string }[]
}

/** An entity of MikroORM, as `em.getMetadata(Account)` describes it. */
export interface MikroOrmTable {
  readonly tableName: string
  readonly schema?: string | undefined
  readonly primaryKeys: readonly string[]
  readonly properties: object
}

/** A model of Sequelize. */
export interface SequelizeTable {
  getTableName(): string | object
  readonly primaryKeyAttributes: readonly string[]
}

/** A model of Prisma: `prisma.account`. */
export interface PrismaTable {
  readonly fields: object
  findUniqueOrThrow: unknown
}

/** A table as an ORM knows it. */
export type OrmTable = DrizzleTable | TypeOrmTable | MikroOrmTable | SequelizeTable | PrismaTable

/** Its names in the database; no key columns where the ORM does not say them. */
export interface OrmNames extends ModelName {
  readonly keyColumns: readonly string[]
}

/** A table by name, or by what its model says: the handle of the transaction may say more. */
export interface ModelName extends TableName {
  readonly placedByHandle?: true
}

/**
 * The table that the ORM itself uses in this transaction. A schema that only the handle knows must not be guessed: a
 * table of the same name in the search path would be locked and changed instead.
 *
 * @throws OPTION_INVALID
 */
export function placedTable<Tx>(driver: Driver<Tx>, tx: Tx, model: ModelName): TableName {
  const { placedByHandle = false, ...table } = model
  if (!placedByHandle) return table
  if (driver.schemaOf !== undefined) return inSchema(table.table, driver.schemaOf(tx, table.schema))
  if (table.schema !== undefined && table.schema !== chosenLater) return table
  const subject =
    'the schema of this entity is chosen by its entity manager, and the transaction is not of MikroORM; use { schema, table }'
  throw holdfastError('OPTION_INVALID', { details: { option: 'table', subject } })
}

/** The rows of a call, in that table. */
export function placed<Tx, T extends RowTarget>(driver: Driver<Tx>, tx: Tx, target: T): T {
  return { ...target, table: placedTable(driver, tx, target.table) }
}

/** MikroORM's word for it. */
const chosenLater = '*'

function inSchema(table: string, schema: string | undefined): TableName {
  return schema === undefined ? { table } : { schema, table }
}

const drizzleName: symbol = Symbol.for('drizzle:Name')
const drizzleOriginal: symbol = Symbol.for('drizzle:OriginalName')
const drizzleSchema: symbol = Symbol.for('drizzle:Schema')
const drizzleColumns: symbol = Symbol.for('drizzle:Columns')

type Fields = Readonly<Record<string | symbol, unknown>>

/** Reads the names off a table of an ORM; nothing if it is none. */
export function ormNames(given: unknown): OrmNames | undefined {
  if (given === null || (typeof given !== 'object' && typeof given !== 'function')) return undefined
  const fields = given as Fields
  if (typeof fields[drizzleName] === 'string') return ofDrizzle(fields)
  if (typeof fields['getTableName'] === 'function' && Array.isArray(fields['primaryKeyAttributes']))
    return ofSequelize(given as SequelizeTable)
  if (typeof fields['$name'] === 'string') return ofPrisma(fields)
  if (typeof fields['tableName'] !== 'string') return undefined
  if (Array.isArray(fields['primaryColumns'])) return ofTypeOrm(given as TypeOrmTable)
  return Array.isArray(fields['primaryKeys']) ? ofMikroOrm(given as MikroOrmTable) : undefined
}

function ofDrizzle(table: Fields): OrmNames {
  const columns = Object.values(table[drizzleColumns] as Record<string, DrizzleColumn>)
  const keyColumns = columns.filter(({ primary }) => primary).map(({ name }) => name)
  // An alias has a name of its own, which the database does not know.
  return named(table[drizzleOriginal] ?? table[drizzleName], table[drizzleSchema], keyColumns)
}

interface DrizzleColumn {
  readonly name: string
  readonly primary: boolean
}

function ofSequelize(model: SequelizeTable): OrmNames {
  const given = model.getTableName()
  const { rawAttributes } = model as { rawAttributes?: Record<string, { field?: string }> }
  const keys = model.primaryKeyAttributes.map((key) => rawAttributes?.[key]?.field ?? key)
  if (typeof given === 'string') return named(given, undefined, keys)
  const { tableName, schema } = given as Fields
  return named(tableName, schema, keys)
}

function ofTypeOrm({ tableName, schema, primaryColumns }: TypeOrmTable): OrmNames {
  return named(
    tableName,
    schema,
    primaryColumns.map(({ databaseName }) => databaseName),
  )
}

function ofMikroOrm({ tableName, schema, primaryKeys, properties }: MikroOrmTable): OrmNames {
  const names = properties as Record<string, { readonly fieldNames?: readonly string[] }>
  const keys = primaryKeys.flatMap((key) => names[key]?.fieldNames ?? [key])
  return { ...named(tableName, schema, keys), placedByHandle: true }
}

interface PrismaModel {
  readonly dbName?: string | null
  readonly schema?: string | null
  readonly fields: readonly { readonly name: string; readonly dbName?: string }[]
}

function ofPrisma({ $name: name, $parent: client }: Fields): OrmNames | undefined {
  const described = (client as { _runtimeDataModel?: { models?: Record<string, PrismaModel> } })
    ?._runtimeDataModel
  const model = described?.models?.[name as string]
  if (model === undefined) return undefined
  // Which columns are the primary key is not kept at run time.
  const id = model.fields.find((field) => field.name === 'id')
  const schema = model.schema ?? schemaOfAdapter(client)
  return named(model.dbName ?? name, schema, id === undefined ? [] : [id.dbName ?? 'id'])
}

/** `new PrismaPg(…, { schema })`: where models without `@@schema` are. Prisma names one always, whatever the search path is. */
function schemaOfAdapter(client: unknown): unknown {
  const { _engineConfig: config } = client as {
    readonly _engineConfig?: { readonly adapter?: { readonly options?: { schema?: unknown } } }
  }
  return config?.adapter?.options?.schema ?? 'public'
}

function named(table: unknown, schema: unknown, keyColumns: readonly string[]): OrmNames {
  const within = typeof schema === 'string' && schema !== '' ? { schema } : {}
  return { table: table as string, ...within, keyColumns }
}

/** A table by name. Without a schema, the database finds it where the transaction looks for tables. */
export interface TableName {
  readonly schema?: string
  readonly table: string
}

/** The table as people write it, for messages. */
export function displayName({ schema, table }: TableName): string {
  return schema === undefined ? table : `${schema}.${table}`
}

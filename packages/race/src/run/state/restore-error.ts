/** The rows of a table cannot be put back as they were: `state: 'restore'` does not begin, or did not end. */
export class RestoreError extends Error {
  override readonly name = 'RestoreError'
  /** With its schema, quoted as SQL needs it. */
  readonly table: string
  /** The constraint that refuses the rows, if one does. */
  readonly constraint: string | undefined

  constructor(message: string, table: string, constraint?: string, cause?: unknown) {
    super(message, { cause })
    this.table = table
    this.constraint = constraint
  }
}

/** What the server said of the rows of a table. */
export function refusedRows(table: string, error: unknown): RestoreError {
  const said = error instanceof Error ? error.message : String(error)
  const found: unknown = error instanceof Error ? Reflect.get(error, 'constraint') : undefined
  const constraint = typeof found === 'string' ? found : undefined
  const what =
    constraint === undefined ? said : `the constraint ${constraint} refuses them (${said})`
  return new RestoreError(
    `the rows of ${table} cannot be put back: ${what}`,
    table,
    constraint,
    error,
  )
}

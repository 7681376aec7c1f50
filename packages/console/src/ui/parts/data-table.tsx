import type { ComponentChildren, JSX } from 'preact'

export interface Column<T> {
  readonly name: string
  readonly cell: (row: T) => ComponentChildren
  readonly number?: boolean
  /** The cell that names the row. */
  readonly heads?: boolean
  /** Left out where the window is narrow. */
  readonly wideOnly?: boolean
}

/** Rows and columns. A table that is wider than its place scrolls there, by keyboard too. */
export function DataTable<T>(props: {
  readonly caption: string
  readonly rows: readonly T[]
  readonly columns: readonly Column<T>[]
  readonly keyOf: (row: T) => string | number
}): JSX.Element {
  return (
    <div class="scroll" role="region" aria-label={props.caption} tabIndex={0}>
      <table>
        <caption class="unseen">{props.caption}</caption>
        <thead>
          <tr>
            {props.columns.map((column) => (
              <th key={column.name} scope="col" class={classes(column)}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={props.keyOf(row)}>
              {props.columns.map((column) =>
                column.heads ? (
                  <th key={column.name} scope="row" class={classes(column)}>
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.name} class={classes(column)}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function classes<T>(column: Column<T>): string {
  return [column.number && 'number', column.wideOnly && 'wide-only'].filter(Boolean).join(' ')
}

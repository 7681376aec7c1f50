import { type Page, readPages } from '../docs/checks/pages.ts'
import { codeIn, tableOf } from '../docs/checks/tables.ts'
import { engines } from './engines.ts'

/** The table of docs/what-runs-where.md: a row for each call, a column for each engine. */
const page = readPages().find(({ path }) => path === 'docs/what-runs-where.md') as Page

const columns = Object.keys(engines)

/** `yes` and `no` are of all clients of an engine; else those are named that it is offered on. */
function saidIn(cell: string, client: string): 'yes' | 'no' {
  if (cell === 'yes' || cell === 'no') return cell
  return cell.split(', ').includes(client) ? 'yes' : 'no'
}

const rows = new Map(tableOf(page, 'call').map(([call = '', , ...cells]) => [codeIn(call), cells]))

export const matrix = {
  saidOf: (call: string, engine: string, client: string): 'yes' | 'no' | undefined => {
    const cell = rows.get(call)?.[columns.indexOf(engine)]
    return cell === undefined ? undefined : saidIn(cell, client)
  },
}

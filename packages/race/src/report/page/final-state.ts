import type { Failure, Report } from '../../core/model.ts'
import { type Difference, differenceOf, type TableDifference } from '../difference.ts'
import { times } from '../words.ts'
import { html, type Markup } from './markup.ts'
import { cell } from './step-list.ts'

const shownRows = 12

/** What the run left behind beside what the nearest serial order leaves. */
export function finalState(failure: Failure, report: Report): Markup {
  const difference = differenceOf(failure, report)
  const { tables, outcomes, together, nearest } = difference
  const told = together === undefined || tables.length > 0 ? outcomes : [together]
  if (tables.length === 0 && told.length === 0) return html``
  const ends = told.map((text) => html`<li>${text}</li>`)
  return html`<section class="panel"><h2>What it left behind</h2>
<p class="small">+ is what this run left; − is what is left when the flows go one after the other (${nearest.join(', ')}).</p>
${tables.map((table) => tableOf(table, difference))}
${ends.length === 0 ? undefined : html`<ul>${ends}</ul>`}</section>`
}

function tableOf(table: TableDifference, { orders }: Difference): Markup {
  const { name, columns, found, serial, extra, missing, changed } = table
  const rows = [
    ...changed.flatMap((one) => [row('+', one.found), row('−', one.serial)]),
    ...extra.map((one) => row('+', one)),
    ...missing.map((one) => row('−', one)),
  ]
  const hidden = rows.length - shownRows
  const serially = orders === 1 ? 'the serial order' : `the ${orders} serial orders`
  return html`<p><b>${name}</b>: ${times(found, 'row')} here, ${serial.join(' or ')} in ${serially}</p>
<div class="scroll"><table><thead><tr><th class="sign"></th>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead><tbody>${rows.slice(0, shownRows)}</tbody></table></div>
${hidden > 0 ? html`<p class="small">and ${times(hidden, 'row')} more</p>` : undefined}`
}

function row(sign: '+' | '−', values: readonly (string | null)[]): Markup {
  return html`<tr class="${sign === '+' ? 'extra' : 'missing'}"><td class="sign">${sign}</td>${values.map(cell)}</tr>`
}

import type { Explanation } from '../explain.ts'
import type { Moment } from '../anomaly/history.ts'
import { sawOf } from '../saw.ts'
import { cut } from '../sql/shorten.ts'
import { resumeText, stepText, type TimelineRow, timelineOf } from '../timeline.ts'
import { placeText } from '../words.ts'
import { html, type Markup } from './markup.ts'

const shownRows = 20

/** Every step with its whole statement, parameters and answer, folded. */
export function stepList({ history, marks }: Explanation, of = ''): Markup {
  const rows = timelineOf(history, marks)
  const items = rows
    .filter(({ kind }) => kind === 'step')
    .map((row) =>
      stepItem(
        row,
        rows.find((one) => one.kind === 'resume' && one.moment === row.moment),
        of,
      ),
    )
  return html`<ol class="steps">${items}</ol>`
}

function stepItem(row: TimelineRow, resumed: TimelineRow | undefined, of: string): Markup {
  const { moment, note, mark } = row
  const saw = sawOf(moment.step)
  const waits =
    note === undefined
      ? undefined
      : html`<span class="waits">${note}${resumed === undefined ? '' : `; ${resumeText(resumed)}`}</span>`
  const said =
    mark === undefined || mark.note === ''
      ? undefined
      : html`<span class="said">${mark.note}</span>`
  return html`<li id="${of}step-${moment.number}"><details><summary class="flow-${moment.step.flow % 5}"><span class="at">${moment.number}</span><span class="who">${moment.who}</span><span class="mono">${stepText(moment, 150)}${saw === undefined ? undefined : html` <span class="${moment.step.answer.error === undefined ? 'saw' : 'failed'}">→ ${saw}</span>`}</span>${waits}${said}</summary><div class="inside">${insideOf(moment)}</div></details></li>
`
}

function insideOf(moment: Moment): Markup[] {
  const { step } = moment
  const lane = step.lane === 0 ? '' : `, connection ${step.lane + 1}`
  const from = step.from === undefined ? '' : `${placeText(step.from)}. `
  const facts = html`<p class="small">${from}${stateText(moment)}${lane}; ${step.footprint.isolation}; backend ${step.pid}</p>`
  const sql = step.statements.map((statement) => html`<pre>${statement.trim()}</pre>`)
  return [...sql, parameterTable(step.parameters), answerTable(moment), facts]
}

function parameterTable(parameters: readonly (string | null)[]): Markup {
  if (parameters.length === 0) return html``
  const rows = parameters.map(
    (value, at) => html`<tr><th scope="row">$${at + 1}</th>${cell(value)}</tr>`,
  )
  return html`<table>${rows}</table>`
}

function answerTable({ step: { answer } }: Moment): Markup {
  const { columns = [], rows = [], rowCount, tag, error } = answer
  if (error !== undefined) return html`<p class="said">${error.sqlstate}: ${error.message}</p>`
  if (columns.length === 0)
    return tag === undefined ? html`` : html`<p class="small mono">${tag}</p>`
  const shown = rows.slice(0, shownRows)
  const more = rowCount > shown.length ? html`<p class="small">${rowCount} rows in all</p>` : html``
  return html`<div class="scroll"><table><thead><tr>${columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead><tbody>${shown.map((row) => html`<tr>${row.map(cell)}</tr>`)}</tbody></table></div>${more}`
}

export function cell(value: string | null): Markup {
  return value === null ? html`<td class="null">NULL</td>` : html`<td>${cut(value, 200)}</td>`
}

function stateText({ step, transaction }: Moment): string {
  if (step.half === 'execute')
    return 'Executed and not yet committed: its commit is a step of its own'
  if (step.half === 'commit') return 'The commit of a statement without a transaction'
  if (transaction === undefined || transaction.autocommit) return 'Outside a transaction'
  return `In the transaction from (${transaction.first + 1}) to ${transaction.last === undefined ? 'the end' : `(${transaction.last + 1})`}`
}

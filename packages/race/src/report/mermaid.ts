import type { Report } from '../core/model.ts'
import { assertReport } from './assert-report.ts'
import { coveredText } from './coverage-words.ts'
import { differenceOf, faultOf } from './difference.ts'
import { explainFailure } from './explain.ts'
import { sawOf } from './saw.ts'
import { cut } from './sql/shorten.ts'
import { isWaiting, resumeText, stepText, type TimelineRow, timelineOf } from './timeline.ts'

const widest = 90

/**
 * The failing run as a Mermaid sequence diagram, to be put between ```mermaid fences of a pull
 * request. Without a failure, a diagram that says so.
 */
export function mermaidReport(report: Report): string {
  assertReport(report, 'mermaidReport()')
  const { failure, flows } = report
  const [first = [], ...others] = flows.map((name, flow) => [
    `  participant f${flow} as ${label(name)}`,
  ])
  const over = flows.length < 2 ? 'f0' : `f0,f${flows.length - 1}`
  // The server stands beside the first flow, so that with two nobody reaches over the other.
  const head = ['sequenceDiagram', ...first, '  participant db as PostgreSQL', ...others.flat()]
  if (failure === undefined) {
    const verdict = label(`${report.verdict}: ${coveredText(report)}`)
    return `${[...head, `  Note over ${over}: ${verdict}`].join('\n')}\n`
  }
  const { history, marks } = explainFailure(report, failure)
  const lines = timelineOf(history, marks).flatMap(rowLines)
  return `${[...head, ...lines, `  Note over ${over}: ✗ ${label(faultOf(failure, differenceOf(failure, report)))}`].join('\n')}\n`
}

function rowLines(row: TimelineRow): string[] {
  const { moment, kind, mark, note } = row
  const flow = `f${moment.step.flow}`
  const saw = sawOf(moment.step)
  if (kind === 'resume') {
    return [
      `  db-->>${flow}: ${label(`(${moment.number}) ${resumeText(row)}${saw === undefined ? '' : ` → ${saw}`}`)}`,
    ]
  }
  const text = label(`${moment.number} ${stepText(moment, widest)}`)
  const sent = moment.kind === 'crash' ? `  ${flow}-x${flow}: ${text}` : `  ${flow}->>db: ${text}`
  const tells =
    saw !== undefined &&
    !isWaiting(moment) &&
    (moment.kind === 'read' || moment.kind === 'lock' || moment.step.answer.error !== undefined)
  const remarks = [note, mark?.note].filter((one) => one !== undefined && one !== '')
  return [
    sent,
    ...(tells ? [`  db-->>${flow}: ${label(`→ ${saw}`)}`] : []),
    ...(remarks.length === 0 ? [] : [`  Note over ${flow}: ${label(remarks.join(', '))}`]),
  ]
}

/** Mermaid ends a statement at `;` and a line, takes `#` for the start of an entity, and reads HTML. */
function label(text: string): string {
  const flat = cut(text.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim(), widest + 20)
  return flat.replaceAll(/[#;<>&"`%{}[\]\\]/g, (one) => `#${one.codePointAt(0)};`)
}

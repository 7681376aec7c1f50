import type { Failure, Report } from '../core/model.ts'
import { differenceOf, faultOf } from './difference.ts'
import { explainFailure, type Mark } from './explain.ts'
import type { Moment } from './history.ts'
import { fileText, ref } from './words.ts'

/** What stands beside the line, by the part that its statement has. */
const remarks: Readonly<Record<Mark['role'], string>> = {
  'stale-read': 'what is read here is no longer so when it is relied on',
  overtaking: 'this makes it untrue',
  'stale-write': 'relies on what was read before, which is no longer so',
  circle: 'waits in a circle',
  hit: 'fails as in no serial order',
}

/** Lines for GitHub Actions, which shows them beside the code of a pull request. None without a race. */
export function annotationsOf(report: Report): string[] {
  const { failure } = report
  return failure === undefined ? [] : linesOf(report, failure)
}

function linesOf(report: Report, failure: Failure): string[] {
  const { anomaly, history, marks, why } = explainFailure(report, failure)
  const title = `${anomaly} in ${report.name}`
  const marked = history.moments.flatMap((moment) => {
    const mark = marks.get(moment.step.index)
    return mark === undefined ? [] : [{ moment, mark }]
  })
  const main = marked.find(({ mark }) => mark.role === 'stale-write' || mark.role === 'hit')
  const found = faultOf(failure, differenceOf(failure, report.flows))
  const lines = marked.map(({ moment, mark }) => {
    const level = moment === main?.moment ? 'error' : 'notice'
    return lineOf(level, moment, title, `${ref(moment)}: ${remarks[mark.role]}.`)
  })
  return [
    ...(main === undefined
      ? [`::error title=${property(title)}::${text(`${found}. ${why}`)}`]
      : []),
    ...new Set(lines),
  ]
}

function lineOf(level: string, { step }: Moment, title: string, message: string): string {
  const file = step.from && fileText(step.from.file, process.env['GITHUB_WORKSPACE'])
  const where = file === undefined ? '' : `file=${property(file)},line=${step.from?.line},`
  return `::${level} ${where}title=${property(title)}::${text(message)}`
}

function text(message: string): string {
  return message.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

function property(value: string): string {
  return text(value).replaceAll(':', '%3A').replaceAll(',', '%2C')
}

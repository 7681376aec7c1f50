import type { Failure, Place, Report } from '../core/model.ts'
import { differenceOf, faultOf } from './difference.ts'
import { type Explanation, explainFailure, type Mark } from './explain.ts'
import { fileText, ref } from './words.ts'

/** What stands beside the line, by the part that its statement has. */
const said: Readonly<Record<Mark['role'], string>> = {
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
  const explanation = explainFailure(report, failure)
  const title = `${explanation.anomaly} in ${report.name}`
  const remarks = remarksOf(explanation)
  const found = faultOf(failure, differenceOf(failure, report))
  const lines = remarks.map((remark) => lineOf(remark, title))
  return [
    ...(remarks.some(({ isMain }) => isMain)
      ? []
      : [`::error title=${property(title)}::${text(`${found}. ${explanation.why}`)}`]),
    ...new Set(lines),
  ]
}

/** What is to be said about one line of the code. */
export interface Remark {
  readonly place: Place | undefined
  /** It is the write that should not have been made, or the statement that failed. */
  readonly isMain: boolean
  readonly message: string
}

/** One for each step that has a part in the failure, in the order of the run. */
export function remarksOf({ history, marks }: Explanation): readonly Remark[] {
  const marked = history.moments.flatMap((moment) => {
    const mark = marks.get(moment.step.index)
    return mark === undefined ? [] : [{ moment, mark }]
  })
  const main = marked.find(({ mark }) => mark.role === 'stale-write' || mark.role === 'hit')
  return marked.map(({ moment, mark }) => ({
    place: moment.step.from,
    isMain: moment === main?.moment,
    message: `${ref(moment)}: ${said[mark.role]}.`,
  }))
}

function lineOf({ place, isMain, message }: Remark, title: string): string {
  const file = place && fileText(place.file, process.env['GITHUB_WORKSPACE'])
  const where = file === undefined ? '' : `file=${property(file)},line=${place?.line},`
  return `::${isMain ? 'error' : 'notice'} ${where}title=${property(title)}::${text(message)}`
}

function text(message: string): string {
  return message.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

function property(value: string): string {
  return text(value).replaceAll(':', '%3A').replaceAll(',', '%2C')
}

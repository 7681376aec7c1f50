import type { Failure, Report } from '../../core/model.ts'
import { assertReport } from '../assert-report.ts'
import {
  boundedBy,
  coveredText,
  isVacuous,
  metText,
  notCoveredText,
  vacuousWhy,
} from '../coverage-words.ts'
import { differenceOf, faultOf } from '../difference.ts'
import { type Explanation, explainFailure } from '../explain.ts'
import { mermaidReport } from '../mermaid.ts'
import { times } from '../words.ts'
import { finalState } from './final-state.ts'
import { flowStates } from './flow-states.ts'
import { html, type Markup } from './markup.ts'
import { cycleList, fixList, legend, pageOf, sentence } from './parts.ts'
import { pictureOf } from './picture.ts'
import { stepList } from './step-list.ts'
import { stepper } from './stepper.ts'

/**
 * The report as one HTML page: a picture of the interleaving, every statement with what it saw, and
 * what the search covered. It loads nothing, and its policy forbids it to.
 */
export function htmlReport(report: Report): string {
  assertReport(report, 'htmlReport()')
  const { failure } = report
  const body = failure === undefined ? verdictBody(report) : raceBody(report, failure)
  return pageOf({
    title: `${report.name}: ${verdictOf(report).word}`,
    body,
    server: report.server,
    ...(failure && { script: stepper }),
  })
}

interface Verdict {
  readonly word: string
  readonly badge: 'race' | 'free' | 'open'
  readonly title: string
}

function verdictOf(report: Report): Verdict {
  const { failure } = report
  if (failure !== undefined) {
    const word = failure.kind === 'deadlock' || failure.kind === 'crash' ? failure.kind : 'race'
    return { word, badge: 'race', title: 'Race' }
  }
  if (isVacuous(report)) {
    return { word: 'vacuous', badge: 'open', title: 'The flows never overlapped' }
  }
  if (report.verdict === 'race-free')
    return { word: 'no race', badge: 'free', title: 'No race found, and every class was run' }
  return report.verdict === 'bounded'
    ? { word: 'no race found', badge: 'open', title: `No race found ${boundedBy(report).what}` }
    : { word: 'no verdict', badge: 'open', title: 'No verdict' }
}

function headOf(report: Report, title: string, lead: string): Markup {
  const { word, badge } = verdictOf(report)
  return html`<header><p class="kicker"><span class="badge ${badge}">${word}</span><span>${report.name}</span></p>
<h1>${title}</h1>
<p class="lead">${lead}</p></header>`
}

function raceBody(report: Report, failure: Failure): Markup {
  const explanation = explainFailure(report, failure)
  const [title, ...lead] = explanation.title.split(': ')
  const [again, tries] = failure.reproduced
  return html`${headOf(report, sentence(title ?? ''), sentence(lead.join(': ') || explanation.title))}
<p class="rule">✗ ${faultOf(failure, differenceOf(failure, report))}</p>
<figure class="panel">${stepperPanel(explanation)}
<div class="scroll">${pictureOf(explanation, false)}${pictureOf(explanation, true)}</div>
${legend()}</figure>
<section class="panel"><h2>Why</h2><p class="why">${explanation.why}</p>${cycleList(explanation)}</section>
<section class="panel"><h2>Fix</h2>${fixList(explanation)}</section>
${finalState(failure, report)}
<section class="panel"><h2>Step by step</h2>${stepList(explanation)}</section>
<section class="panel"><h2>The search</h2><dl class="facts">
<dt>Runs</dt><dd>${times(report.coverage.schedules, 'run')}; ${metText(report)}</dd>
${tries === 0 ? undefined : html`<dt>Reproduced</dt><dd>${again} of ${times(tries, 'replay')}</dd>`}
${notesOf(report)}
<dt>Replay</dt><dd>Run the same test with this in its environment, or pass it as <code>replay</code>:<pre>HOLDFAST_RACE_REPLAY=${failure.token}</pre></dd>
</dl></section>
<details class="panel"><summary>As a Mermaid diagram, for a pull request</summary><pre>${mermaidReport(report)}</pre></details>`
}

function stepperPanel({ history }: Explanation): Markup {
  const { flows, moments } = history
  const states = moments.map(
    ({ step }) =>
      html`<p class="states" data-at="${step.index + 1}" hidden>${flowStates(history, step.index).map((state, flow) => html`<span class="flow-${flow % 5}"><span class="who">${flows[flow] ?? ''}</span> ${state}</span>`)}</p>`,
  )
  return html`<div class="stepper" id="stepper" data-steps="${moments.length}"><div class="controls"><button type="button" name="back">← Back</button><button type="button" name="next">Next →</button><button type="button" name="all">Show all</button><span class="place" id="place" aria-live="polite"></span></div>${states}</div>`
}

function notesOf({ notes, failure }: Report): Markup[] {
  const all = [...notes, ...(failure?.run.notes ?? [])].map(({ message }) => message)
  return [...new Set(all)].map((message) => html`<dt>Note</dt><dd>${message}</dd>`)
}

function verdictBody(report: Report): Markup {
  const { trouble } = report
  const vacuous = isVacuous(report)
  const lead = vacuous
    ? vacuousWhy(report)
    : report.verdict === 'inconclusive'
      ? (trouble?.message ?? 'The search ended without saying why.')
      : `${report.flows.join(', ')}: ${coveredText(report)}.`
  return html`${headOf(report, verdictOf(report).title, lead)}
<section class="panel"><h2>The search</h2><dl class="facts">
${trouble === undefined ? undefined : html`<dt>Trouble</dt><dd>${trouble.kind.replaceAll('-', ' ')}</dd>`}
<dt>Covered</dt><dd>${sentence(coveredText(report))}</dd>
<dt>Met</dt><dd>${sentence(metText(report))}</dd>
<dt>Not covered</dt><dd>${sentence(notCoveredText(report))}</dd>
${notesOf(report)}
</dl></section>`
}

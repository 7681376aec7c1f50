import { createHash } from 'node:crypto'
import type { Failure, Report } from '../../core/model.ts'
import { assertReport } from '../assert-report.ts'
import {
  boundedBy,
  coveredText,
  isVacuous,
  metText,
  notCoveredText,
  vacuousText,
} from '../coverage-words.ts'
import { differenceOf, faultOf } from '../difference.ts'
import { type Explanation, explainFailure } from '../explain.ts'
import { mermaidReport } from '../mermaid.ts'
import { times } from '../words.ts'
import { finalState } from './final-state.ts'
import { flowStates } from './flow-states.ts'
import { html, type Markup, trusted } from './markup.ts'
import { pictureOf } from './picture.ts'
import { stepList } from './step-list.ts'
import { stepper } from './stepper.ts'
import { styles } from './styles.ts'

/**
 * The report as one HTML page: a picture of the interleaving, every statement with what it saw, and
 * what the search covered. It loads nothing, and its policy forbids it to.
 */
export function htmlReport(report: Report): string {
  assertReport(report, 'htmlReport()')
  const { failure } = report
  const body = failure === undefined ? verdictBody(report) : raceBody(report, failure)
  const script = failure === undefined ? '' : stepper
  const policy = `default-src 'none'; style-src ${hashOf(styles)}; script-src ${script === '' ? "'none'" : hashOf(script)}`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${trusted(policy)}">
<title>${report.name}: ${verdictOf(report).word}</title>
<style>${trusted(styles)}</style>
</head>
<body>
<main>
${body}
<footer>Holdfast race explorer · ${report.server}</footer>
</main>
${script === '' ? undefined : html`<script>${trusted(script)}</script>`}
</body>
</html>
`.text
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
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
<p class="rule">✗ ${faultOf(failure, differenceOf(failure, report.flows))}</p>
<figure class="panel">${stepperPanel(explanation)}
<div class="scroll">${pictureOf(explanation, false)}${pictureOf(explanation, true)}</div>
${legend()}</figure>
<section class="panel"><h2>Why</h2><p class="why">${explanation.why}</p>${cycleList(explanation)}</section>
<section class="panel"><h2>Fix</h2>${fixList(explanation)}</section>
${finalState(failure, report.flows)}
<section class="panel"><h2>Step by step</h2>${stepList(explanation)}</section>
<section class="panel"><h2>The search</h2><dl class="facts">
<dt>Runs</dt><dd>${times(report.coverage.schedules, 'run')}; ${metText(report)}</dd>
${tries === 0 ? undefined : html`<dt>Reproduced</dt><dd>${again} of ${times(tries, 'replay')}</dd>`}
${notesOf(report)}
<dt>Replay</dt><dd>Run the same test with this in its environment, or pass it as <code>replay</code>:<pre>HOLDFAST_RACE_REPLAY=${failure.token}</pre></dd>
</dl></section>
<details class="panel"><summary>As a Mermaid diagram, for a pull request</summary><pre>${mermaidReport(report)}</pre></details>`
}

function cycleList({ cycle }: Explanation): Markup | undefined {
  if (cycle.length === 0) return undefined
  return html`<p class="small">Neither can have come first:</p><ul>${cycle.map((line) => html`<li>${line}</li>`)}</ul>`
}

function fixList({ fixes }: Explanation): Markup {
  if (fixes.length === 0) return html`<p>None known for this pattern.</p>`
  const items = fixes.map(
    ({ joint, text, code }, at) =>
      html`<li>${at === 0 ? undefined : html`<span class="joint">${joint}</span> `}${text}${code === undefined ? undefined : html`<pre>${code}</pre>`}</li>`,
  )
  return html`<ol class="fixes">${items}</ol>`
}

function stepperPanel({ history }: Explanation): Markup {
  const { flows, moments } = history
  const states = moments.map(
    ({ step }) =>
      html`<p class="states" data-at="${step.index + 1}" hidden>${flowStates(history, step.index).map((state, flow) => html`<span class="flow-${flow % 5}"><span class="who">${flows[flow] ?? ''}</span> ${state}</span>`)}</p>`,
  )
  return html`<div class="stepper" id="stepper" data-steps="${moments.length}"><div class="controls"><button type="button" name="back">← Back</button><button type="button" name="next">Next →</button><button type="button" name="all">Show all</button><span class="place" id="place" aria-live="polite"></span></div>${states}</div>`
}

function legend(): Markup {
  const item = (shape: string, text: string): Markup =>
    html`<span><svg viewBox="-8 -8 16 16" aria-hidden="true">${trusted(shape)}</svg>${text}</span>`
  return html`<figcaption>
${item('<circle class="node" r="5.5"/>', 'reads')}
${item('<path class="node" d="M0-7l7 7-7 7-7-7z"/>', 'locks')}
${item('<rect class="node" x="-5" y="-5" width="10" height="10" rx="1.5"/>', 'writes')}
${item('<circle class="node" r="7"/><path class="tick" d="M-3 0l2.2 2.4 4-4.8"/>', 'commits: others see it from here on')}
${item('<rect class="bar" x="-4" y="-8" width="8" height="16" rx="4" fill="currentColor"/>', 'open transaction')}
<span>Time goes downwards. A step leads to its whole statement.</span>
</figcaption>`
}

function notesOf({ notes, failure }: Report): Markup[] {
  const all = [...notes, ...(failure?.run.notes ?? [])].map(({ message }) => message)
  return [...new Set(all)].map((message) => html`<dt>Note</dt><dd>${message}</dd>`)
}

function verdictBody(report: Report): Markup {
  const { trouble } = report
  const vacuous = isVacuous(report)
  const lead = vacuous
    ? (trouble?.message ?? vacuousText)
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

function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

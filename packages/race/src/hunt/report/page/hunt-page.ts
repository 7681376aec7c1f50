import { differenceOf, faultOf } from '../../../report/difference.ts'
import { html, type Markup } from '../../../report/page/markup.ts'
import { cycleList, fixList, legend, pageOf, sentence } from '../../../report/page/parts.ts'
import { pictureOf } from '../../../report/page/picture.ts'
import { stepList } from '../../../report/page/step-list.ts'
import { placeText, times } from '../../../report/words.ts'
import { countsText } from '../format-hunt.ts'
import type { HuntedPair, HuntReport, Input } from '../../model.ts'
import { type Race, racesOf } from '../races.ts'
import { anchorOf, matrixOf } from './matrix.ts'
import { opener } from './opener.ts'
import { huntStyles } from './styles.ts'

/**
 * A hunt as one HTML page: every pair of calls in a matrix, and of each proven race its picture, reason and fixes. It
 * loads nothing, and its policy forbids it to.
 */
export function htmlHunt(report: HuntReport): string {
  const races = racesOf(report)
  const title = races.length === 0 ? 'No race is proven' : `${times(races.length, 'race')} proven`
  return pageOf({
    title: `Hunt: ${title}`,
    server: report.server,
    script: opener,
    ownStyles: huntStyles,
    body: html`<header><p class="kicker"><span class="badge ${races.length === 0 ? 'open' : 'race'}">hunt</span></p>
<h1>${title}</h1>
<p class="lead">${sentence(countsText(report))}.</p></header>
${matrixOf(report)}
${races.map((race) => raceSection(race, report))}
${rest(report)}`,
  })
}

function raceSection({ pair, report, failure, explanation }: Race, whole: HuntReport): Markup {
  const anchor = anchorOf(pair, whole)
  const { places = [], inputs, token = '', from, patch } = pair
  const of = `${anchor}-`
  return html`<section class="panel race" id="${anchor}"><h2>${pair.name}</h2>
<p class="name">${sentence(explanation.title)}</p>
<p class="rule">✗ ${faultOf(failure, differenceOf(failure, report))}</p>
<p class="why">${explanation.why}</p>${cycleList(explanation)}
<h3>Fix</h3>${fixList(explanation)}
${patch === undefined ? undefined : html`<p>As a diff: ${patch.text}</p><pre>${patch.diff}</pre>`}
<details class="timeline"><summary>The timeline</summary>
<div class="scroll">${pictureOf(explanation, false, of)}${pictureOf(explanation, true, of)}</div>
<figure>${legend()}</figure>
${stepList(explanation, of)}</details>
<dl class="facts">
<dt>From</dt><dd>${from.join('; ')}</dd>
${places.length === 0 ? undefined : html`<dt>Lines</dt><dd class="mono">${places.map(placeText).join(', ')}</dd>`}
${(inputs ?? []).map((input, at) => html`<dt>${at === 0 ? 'Sent' : 'and'}</dt><dd><pre>${inputText(input)}</pre></dd>`)}
<dt>Replay</dt><dd class="mono">${token}</dd>
</dl></section>
`
}

function inputText(input: Input): string {
  if (input.kind === 'arguments') return input.values.map((one) => JSON.stringify(one)).join(', ')
  const { method, path, headers, body } = input
  const head = headers.map(([name, value]) => `${name}: ${value}`)
  return [`${method} ${path}`, ...head, ...(body === undefined ? [] : ['', body])].join('\n')
}

/** What is no proof: why it is not decided, and from where the refuted ones were run. */
function rest(report: HuntReport): Markup {
  const { pairs, calls, notes } = report
  const item = (pair: HuntedPair, text: string): Markup =>
    html`<li id="${anchorOf(pair, report)}"><b>${pair.name}</b>${text === '' ? '' : `: ${text}`}</li>`
  const group = (
    title: string,
    verdict: HuntedPair['verdict'],
    tell: (pair: HuntedPair) => string,
  ) => {
    const of = pairs.filter((pair) => pair.verdict === verdict)
    if (of.length === 0) return undefined
    return html`<details class="panel"><summary>${title} (${of.length})</summary><ul>${of.map((pair) => item(pair, tell(pair)))}</ul></details>`
  }
  const unusable = calls.filter(({ unusable: because }) => because !== undefined)
  return html`${group('Not decided', 'undecided', ({ because = '' }) => because)}
${group('Not looked at', 'not looked at', ({ because = '' }) => because)}
${group('Refuted: every order that can differ was run', 'refuted', ({ from, runs, assumed }) => `${times(runs, 'run')} from ${from.join('; ')}${assumed === undefined ? '' : `; ${assumed}`}`)}
${unusable.length === 0 ? undefined : html`<details class="panel"><summary>Calls that are in no pair (${unusable.length})</summary><ul>${unusable.map(({ number, name, unusable: because = '' }) => html`<li><b>${name}</b> (${number}): ${because}</li>`)}</ul></details>`}
${notes.map((note) => html`<p class="small">${note}</p>`)}`
}

import { html, type Markup } from '../../../report/page/markup.ts'
import type { HuntedPair, HuntReport, PairVerdict } from '../../model.ts'

/** A sign beside the colour, so that no colour is needed to tell them apart. */
const cells: Readonly<Record<PairVerdict, { readonly sign: string; readonly style: string }>> = {
  proven: { sign: '✗', style: 'race' },
  refuted: { sign: '✓', style: 'free' },
  undecided: { sign: '?', style: 'open' },
  'not looked at': { sign: '…', style: 'skipped' },
}

/** What a cell leads to. */
export function anchorOf(pair: HuntedPair, { pairs }: HuntReport): string {
  return `pair-${pairs.indexOf(pair) + 1}`
}

/** Every call against every other. Half of it is enough: a pair has no order. */
export function matrixOf(report: HuntReport): Markup {
  const { pairs } = report
  if (pairs.length === 0) return html``
  const names = namesIn(pairs)
  const byNames = new Map(pairs.map((pair) => [keyOf(...pair.calls), pair]))
  const rows = names.map((name, row) => {
    const across = names.slice(0, row + 1).map((other) => {
      const pair = byNames.get(keyOf(name, other))
      return pair === undefined ? html`<td></td>` : cellOf(pair, report)
    })
    return html`<tr><th scope="row"><span class="at">${row + 1}</span>${name}</th>${across}</tr>
`
  })
  const heads = names.map((name, at) => html`<th scope="col" title="${name}">${at + 1}</th>`)
  const legend = Object.entries(cells).map(
    ([verdict, { sign, style }]) =>
      html`<span><b class="cell ${style}">${sign}</b>${verdict}</span>`,
  )
  return html`<figure class="panel"><div class="scroll" tabindex="0" role="region" aria-label="All pairs"><table class="matrix"><thead><tr><td></td>${heads}</tr></thead><tbody>${rows}</tbody></table></div>
<figcaption>${legend}<span>Each pair stands here once. An empty cell below the diagonal: the two have nothing in common in the database.</span></figcaption></figure>`
}

function cellOf(pair: HuntedPair, report: HuntReport): Markup {
  const { sign, style } = cells[pair.verdict]
  const label = `${pair.name}: ${pair.verdict}`
  return html`<td><a class="cell ${style}" href="#${anchorOf(pair, report)}" title="${label}" aria-label="${label}">${sign}</a></td>`
}

function namesIn(pairs: readonly HuntedPair[]): readonly string[] {
  return [...new Set(pairs.flatMap(({ calls }) => calls))].toSorted((one, other) =>
    one.localeCompare(other, 'en'),
  )
}

function keyOf(one: string, other: string): string {
  return JSON.stringify([one, other].toSorted())
}

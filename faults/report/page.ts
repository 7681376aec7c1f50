import { statement } from './markdown.ts'
import {
  commandFor,
  type EpisodeReport,
  outcomes,
  type RunReport,
  type Summary,
} from './run-report.ts'
import { colours, escaped } from './timeline.ts'

/** The run as one page without anything else: no script, no font, no request. `pictures` are SVG. */
export function page(run: RunReport, summary: Summary, pictures: readonly string[]): string {
  const { violations, episodes, operations, recoveredMs } = summary
  const failing = run.episodes.filter((episode) => episode.violations.length > 0)
  const title = `Faults, tier ${run.tier}`
  const facts: readonly (readonly [string, string])[] = [
    ['episodes', number(episodes)],
    ['operations', number(operations)],
    ['violations', number(violations)],
    [
      'unknown outcomes',
      number(summary.workloads.reduce((all, { counts }) => all + counts.unknown, 0)),
    ],
    ['progress again, median', `${number(recoveredMs.median)} ms`],
    ['progress again, slowest', `${number(recoveredMs.most)} ms`],
  ]
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>${style}</style>
<h1>${escaped(title)} <span class="${violations === 0 ? 'good' : 'bad'}">${violations === 0 ? 'no violation' : `${violations} violations`}</span></h1>
<p class="quiet">Seed ${run.seed}, begun ${escaped(run.startedAt)}</p>
<dl class="facts">${facts.map(([name, value]) => `<div><dt>${name}</dt><dd>${value}</dd></div>`).join('')}</dl>
<p>${escaped(statement(summary))}</p>
<ul>${run.notes.map((note) => `<li>${escaped(note)}</li>`).join('')}</ul>
${failing.map((episode) => failure(run, episode)).join('\n')}
${pictures.map((picture) => `<figure>${picture}</figure>`).join('\n')}
<div class="beside">
<section><h2>Workloads</h2>${table(
    ['workload', ...outcomes],
    summary.workloads.map(({ name, counts }) => [
      name,
      ...outcomes.map((outcome) => number(counts[outcome])),
    ]),
  )}</section>
<section><h2>Faults</h2>${table(
    ['fault', 'struck', 'violations'],
    summary.faults.map(({ name, struck, violations: of }) => [name, number(struck), number(of)]),
  )}</section>
</div>
<details><summary>All episodes</summary>${table(
    ['episode', 'seed', 'faults', 'seconds', 'progress after ms', 'violations'],
    run.episodes.map((episode) => [
      String(episode.number),
      String(episode.seed),
      episode.faults.join(', '),
      episode.seconds.toFixed(1),
      number(episode.recoveredMs),
      String(episode.violations.length),
    ]),
  )}</details>
</html>
`
}

function failure(run: RunReport, episode: EpisodeReport): string {
  const { number: at, seed, faults, violations } = episode
  const list = violations.map(
    ({ rule, workload, what }) =>
      `<li><b>${escaped(rule)}</b> in ${escaped(workload)}: ${escaped(what)}</li>`,
  )
  return `<section class="failure"><h2>Episode ${at}, seed ${seed}</h2>
<p>${escaped(faults.join(', '))}</p><ul>${list.join('')}</ul>
<pre>${escaped(commandFor(run, episode))}</pre></section>`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (tag: string, row: readonly string[]): string =>
    `<tr>${row.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`
  return `<table><thead>${cells('th', head)}</thead><tbody>${rows.map((row) => cells('td', row)).join('')}</tbody></table>`
}

function number(value: number): string {
  return Math.round(value).toLocaleString('en')
}

const style = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 1240px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.05rem }
h1 span { font-size: 0.9rem; font-weight: 600; padding: 0.2em 0.6em; border-radius: 1em; vertical-align: 0.2em; color: #fff }
.good { background: ${colours.ok} } .bad { background: #b3261e }
.quiet { opacity: 0.7; margin-top: 0.2rem }
.facts { display: flex; flex-wrap: wrap; gap: 0.5rem 2.2rem }
dt { font-size: 0.8rem; opacity: 0.7 } dd { margin: 0; font-size: 1.35rem; font-variant-numeric: tabular-nums }
figure { margin: 1.5rem 0; overflow-x: auto } figure svg { width: 100%; min-width: 900px; height: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: 0.15rem 0.8rem 0.15rem 0; border-bottom: 1px solid #8884 }
th:first-child, td:first-child { text-align: left }
.beside { display: flex; flex-wrap: wrap; gap: 0 4rem }
.failure { border-left: 4px solid #b3261e; padding-left: 1rem }
pre { overflow-x: auto; background: #8882; padding: 0.5rem } summary { cursor: pointer; margin: 1rem 0 }`

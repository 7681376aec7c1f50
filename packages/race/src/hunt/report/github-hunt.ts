/** A hunt for GitHub Actions: remarks beside the code, and a summary of the job. */
import { annotationsOf } from '../../report/annotations.ts'
import { differenceOf, faultOf } from '../../report/difference.ts'
import { harmless } from '../../report/terminal/text.ts'
import { placeText, times } from '../../report/words.ts'
import { countsText, skippedOf } from './format-hunt.ts'
import type { HuntReport } from '../model.ts'
import { type Race, racesOf } from './races.ts'

/** Lines for the log of a job: GitHub shows each beside the line of the code that it names. */
export function huntAnnotations(report: HuntReport): readonly string[] {
  return racesOf(report).flatMap(({ report: race }) => annotationsOf(race))
}

/** Markdown for `$GITHUB_STEP_SUMMARY`, or for a comment on a pull request. */
export function huntSummary(report: HuntReport): string {
  const races = racesOf(report)
  const undecided = report.pairs.filter(({ verdict }) => verdict === 'undecided')
  const { told: skipped, leftOut } = skippedOf(report)
  return [
    `## ${races.length === 0 ? 'No race is proven' : `${times(races.length, 'race')} proven`}`,
    '',
    ...races.flatMap(sectionOf),
    ...folded(`${times(undecided.length, 'pair')} not decided`, undecided),
    ...folded(`${times(skipped.length, 'pair')} not looked at`, skipped),
    ...leftOut.flatMap((text) => [plain(text), '']),
    plain(countsText(report)),
    '',
  ].join('\n')
}

function sectionOf({ pair, report, failure, explanation }: Race): readonly string[] {
  const { places = [], token = '', from, patch } = pair
  const [fix] = explanation.fixes
  return [
    `### ${code(pair.name)}`,
    '',
    `**${plain(explanation.title)}**: ${plain(faultOf(failure, differenceOf(failure, report)))}`,
    '',
    plain(explanation.why),
    '',
    ...(fix === undefined ? [] : [`**Fix:** ${plain(fix.text)}`, '']),
    ...(fix?.code === undefined ? [] : [fenced(fix.code), '']),
    ...(patch === undefined
      ? []
      : [`As a diff: ${plain(patch.text)}`, '', fenced(patch.diff.trimEnd(), 'diff'), '']),
    `From ${plain(from.join('; '))}${places.length === 0 ? '' : `, at ${places.map((place) => code(placeText(place))).join(', ')}`}. Replay: ${code(token)}`,
    '',
  ]
}

function folded(
  title: string,
  pairs: readonly { readonly name: string; readonly because?: string }[],
): readonly string[] {
  if (pairs.length === 0) return []
  const items = pairs.map(({ name, because = '' }) => `- ${code(name)}: ${plain(because)}`)
  return [`<details><summary>${title}</summary>`, '', ...items, '', '</details>', '']
}

/** Text that stays text: names of endpoints and values of rows are whatever users have. */
function plain(text: string): string {
  return flat(text).replaceAll(/[\\`*_[\]<>|#~&@!]/g, (mark) => `&#${mark.charCodeAt(0)};`)
}

function flat(text: string): string {
  return harmless(text).replaceAll(/\s+/g, ' ').trim()
}

function code(name: string): string {
  const text = flat(name)
  const marks = fence(text, '`')
  return `${marks}${padded(text)}${marks}`
}

function padded(text: string): string {
  return text.startsWith('`') || text.endsWith('`') ? ` ${text} ` : text
}

function fenced(text: string, language = ''): string {
  const marks = fence(text, '```')
  return `${marks}${language}\n${text}\n${marks}`
}

/** Longer than any run of such marks inside. */
function fence(text: string, least: string): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length))
  return '`'.repeat(Math.max(least.length, longest + 1))
}

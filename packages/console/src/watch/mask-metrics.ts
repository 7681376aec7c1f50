import type { Masks } from './rule.ts'

/** Labels whose values are our words, or declared in code. */
const plainLabels: ReadonlySet<string> = new Set([
  'book',
  'code',
  'during',
  'event',
  'fault',
  'kind',
  'le',
  'level',
  'outcome',
  'reason',
  'room',
  'table',
  'verb',
])

/** A sample: its name, its labels if it has any, and a number. */
const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+(?: \d+)?)$/
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)",?/g

/** Metrics as they may be shown: our own families, with the values of labels masked that users make up. */
export function shownMetrics(text: string, masks: Masks): string {
  if (!masks.on) return text
  return text
    .split('\n')
    .map((line) => shownLine(line, masks))
    .filter((line) => line !== undefined)
    .join('\n')
}

function shownLine(line: string, masks: Masks): string | undefined {
  if (line === '') return line
  // Texts of help are fixed, of families that we know.
  if (/^# (HELP|TYPE) holdfast_/.test(line)) return line
  const [, name, labels = '', value] = sample.exec(line) ?? []
  if (name === undefined || !name.startsWith('holdfast_')) return undefined
  const pairs = [...labels.matchAll(label)].map(
    ([, key = '', text = '']) => `${key}="${shownValue(key, text, masks)}"`,
  )
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`
}

function shownValue(key: string, text: string, masks: Masks): string {
  if (plainLabels.has(key) || text === '(other)') return text
  // A namespace unless the application labels locks by itself: then only up to the first colon.
  const [namespace = '', rest] = key === 'lock' ? text.split(/:(.*)/s) : []
  if (key === 'lock') return rest === undefined ? text : `${namespace}:${masks.text(rest)}`
  return masks.text(text)
}

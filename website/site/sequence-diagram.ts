/**
 * Sequence diagrams, which GitHub draws with Mermaid. The site draws the few forms that the pages use as a list of messages
 * in lanes, so that it needs no library for them and screen readers read them.
 */
interface Row {
  /** Lanes from 0, the first one left of the other. */
  readonly from: number
  readonly to: number
  readonly kind: 'right' | 'left' | 'note'
  /** For those who do not see lanes. */
  readonly spoken: string
  readonly text: string
}

/** HTML of a diagram; undefined for one of another kind. */
export function sequenceDiagram(source: string): string | undefined {
  const [head, ...lines] = source
    .trim()
    .split('\n')
    .map((line) => line.trim())
  if (head !== 'sequenceDiagram') return undefined
  const lanes = new Map<string, string>()
  const rows: Row[] = []
  for (const line of lines) {
    const [, id, name] = /^participant (\w+) as (.+)$/.exec(line) ?? []
    if (id !== undefined && name !== undefined) lanes.set(id, name)
    else rows.push(rowOf(line, lanes))
  }
  const columns = `style="--lanes: ${lanes.size}"`
  const names = [...lanes.values()].map((name) => `<span>${escape(name)}</span>`).join('')
  return `<div class="sequence" v-pre ${columns}><div class="lanes" aria-hidden="true">${names}</div><ol>${rows
    .map(htmlOf)
    .join('')}</ol></div>\n`
}

function rowOf(line: string, lanes: ReadonlyMap<string, string>): Row {
  const [, first = '', second = first, note] = /^Note over (\w+)(?:,(\w+))?: (.+)$/.exec(line) ?? []
  if (note !== undefined) return row(lanes, first, second, 'note', note)
  const [, from = '', to = '', text] = /^(\w+)--?>>(\w+): (.+)$/.exec(line) ?? []
  if (text === undefined) throw new Error(`not understood in a sequence diagram: ${line}`)
  return row(lanes, from, to, 'right', text)
}

function row(
  lanes: ReadonlyMap<string, string>,
  first: string,
  second: string,
  kind: 'right' | 'note',
  text: string,
): Row {
  const ids = [...lanes.keys()]
  const [from, to] = [ids.indexOf(first), ids.indexOf(second)]
  if (from === -1 || to === -1) throw new Error(`no participant of a sequence diagram: ${text}`)
  const spoken = kind === 'note' ? '' : `${lanes.get(first)} to ${lanes.get(second)}: `
  const direction = kind === 'right' && from > to ? 'left' : kind
  return { from: Math.min(from, to), to: Math.max(from, to), kind: direction, spoken, text }
}

/** Lanes are two columns wide, so that a message goes from the middle of one to the middle of another. */
function htmlOf({ from, to, kind, spoken, text }: Row): string {
  const [start, end] = kind === 'note' ? [2 * from + 1, 2 * to + 3] : [2 * from + 2, 2 * to + 2]
  const hidden = spoken === '' ? '' : `<span class="visually-hidden">${escape(spoken)}</span>`
  return `<li class="${kind}" style="grid-column: ${start} / ${end}">${hidden}${escape(text)}</li>`
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** A reader of Prometheus text, format 0.0.4, that accepts nothing beyond the format. */

export interface ParsedSample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface ParsedFamily {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly samples: ParsedSample[]
}

/** @throws with the line, if it is not exactly what the format allows */
export function parsePrometheus(text: string): ReadonlyMap<string, ParsedFamily> {
  if (!text.endsWith('\n')) throw new Error('the last line is not ended')
  const families = new Map<string, ParsedFamily>()
  const series = new Set<string>()
  let help: { readonly name: string; readonly text: string } | undefined
  let current: ParsedFamily | undefined
  for (const line of text.slice(0, -1).split('\n')) {
    const [, helpName, helpText] = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line) ?? []
    if (helpName !== undefined && helpText !== undefined) {
      if (/\\(?![\\n])/.test(helpText)) throw new Error(`escape in help: ${line}`)
      help = { name: helpName, text: helpText }
      continue
    }
    const [, typeName, type] = /^# TYPE ([^ ]+) (counter|gauge|histogram)$/.exec(line) ?? []
    if (typeName !== undefined) {
      if (help?.name !== typeName) throw new Error(`TYPE without its HELP: ${line}`)
      if (families.has(typeName)) throw new Error(`a second group of ${typeName}`)
      current = { name: typeName, type: type as 'counter', help: help.text, samples: [] }
      families.set(typeName, current)
      continue
    }
    const sample = parseSample(line)
    if (current === undefined || !belongs(current, sample)) throw new Error(`homeless: ${line}`)
    const id = `${sample.name}${JSON.stringify(
      Object.keys(sample.labels)
        .toSorted()
        .map((label) => [label, sample.labels[label]]),
    )}`
    if (series.has(id)) throw new Error(`twice: ${line}`)
    series.add(id)
    current.samples.push(sample)
  }
  for (const family of families.values()) if (family.type === 'histogram') assertHistogram(family)
  return families
}

function belongs({ name, type }: ParsedFamily, { name: sample, labels }: ParsedSample): boolean {
  if (type !== 'histogram') return sample === name
  if (sample === `${name}_bucket`) return 'le' in labels
  return sample === `${name}_sum` || sample === `${name}_count`
}

function parseSample(line: string): ParsedSample {
  const name = /^[a-zA-Z_:][a-zA-Z0-9_:]*/.exec(line)?.[0]
  if (name === undefined) throw new Error(`no name: ${line}`)
  const labels: Record<string, string> = {}
  let rest = line.slice(name.length)
  if (rest.startsWith('{')) {
    rest = rest.slice(1)
    for (;;) {
      const [pair, label, value] =
        /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"/.exec(rest) ?? []
      if (pair === undefined || label === undefined || value === undefined) {
        throw new Error(`no label: ${line}`)
      }
      if (label in labels) throw new Error(`label twice: ${line}`)
      labels[label] = value.replaceAll(/\\(.)/g, (_, escaped: string) =>
        escaped === 'n' ? '\n' : escaped,
      )
      rest = rest.slice(pair.length)
      if (rest.startsWith('}')) break
      if (!rest.startsWith(',')) throw new Error(`after a label: ${line}`)
      rest = rest.slice(1)
    }
    rest = rest.slice(1)
  }
  const [, number] = /^ ([+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)$/.exec(rest) ?? []
  if (number === undefined) throw new Error(`no value: ${line}`)
  return { name, labels, value: Number(number.replace('Inf', 'Infinity')) }
}

/** Buckets rise to +Inf, which is the count. */
function assertHistogram({ name, samples }: ParsedFamily): void {
  const groups = new Map<string, ParsedSample[]>()
  for (const sample of samples) {
    const { le: _, ...labels } = sample.labels
    const id = JSON.stringify(labels)
    groups.set(id, [...(groups.get(id) ?? []), sample])
  }
  for (const [id, group] of groups) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`)
    const bounds = buckets.map(({ labels }) => Number(labels['le']?.replace('+Inf', 'Infinity')))
    const counts = buckets.map(({ value }) => value)
    const rising = (list: readonly number[], strict: boolean): boolean =>
      list.every((value, at) => at === 0 || value > (list[at - 1] as number) - (strict ? 0 : 1e-9))
    const count = group.find((sample) => sample.name === `${name}_count`)?.value
    const sums = group.filter((sample) => sample.name === `${name}_sum`)
    if (!rising(bounds, true) || !rising(counts, false) || bounds.at(-1) !== Infinity) {
      throw new Error(`buckets of ${name} ${id}`)
    }
    if (counts.at(-1) !== count || sums.length !== 1) throw new Error(`count of ${name} ${id}`)
  }
}

import type { MetricFamily, Sample } from './metric-family.ts'

/** The text format that every Prometheus reads. */
export const prometheusType = 'text/plain; version=0.0.4; charset=utf-8'

/** Families as text. One without a sample is left out, as if it did not exist yet. */
export function prometheusText(families: readonly MetricFamily[]): string {
  let text = ''
  for (const family of families) {
    const samples = family.samples()
    if (samples.length === 0) continue
    text += `# HELP ${family.name} ${helpText(family.help)}\n# TYPE ${family.name} ${family.type}\n`
    for (const sample of samples) text += sampleText(family, sample)
  }
  return text
}

function sampleText({ name, labels, bounds = [] }: MetricFamily, sample: Sample): string {
  const pairs = labels.map((label, at) => `${label}="${labelText(sample.labels[at] ?? '')}"`)
  const { histogram } = sample
  if (histogram === undefined) return `${name}${braced(pairs)} ${sample.value}\n`
  let text = ''
  let sum = 0
  histogram.buckets.forEach((count, at) => {
    sum += count
    const bound = bounds[at] === undefined ? '+Inf' : String(bounds[at])
    text += `${name}_bucket${braced([...pairs, `le="${bound}"`])} ${sum}\n`
  })
  return `${text}${name}_sum${braced(pairs)} ${histogram.sum}\n${name}_count${braced(pairs)} ${histogram.count}\n`
}

function braced(pairs: readonly string[]): string {
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function helpText(help: string): string {
  return help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function labelText(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}

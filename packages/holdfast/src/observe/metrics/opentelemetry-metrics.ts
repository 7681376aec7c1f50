import { EventCounts } from './event-counts.ts'
import { DurationFamily, type MetricFamily } from './metric-family.ts'
import type { MetricsOptions } from './metrics.ts'
import type { OtelAttributes, OtelMeter } from './opentelemetry-api.ts'
import { ServerGauges } from './server-gauges.ts'

/** Labels that OpenTelemetry has a word for; the others get our prefix. */
const attributeNames: Readonly<Record<string, string>> = {
  lock: 'holdfast.lock.name',
  table: 'db.collection.name',
  code: 'error.type',
}

/**
 * The name that OpenTelemetry's users expect: dots, and no unit.
 * `holdfast_lock_wait_seconds` is `holdfast.lock.wait.duration`.
 */
export function openTelemetryName(name: string): string {
  return name
    .replace(/_total$/, '')
    .replace(/(?:_duration)?_seconds$/, '_duration')
    .replaceAll('_', '.')
}

/** The same metrics as `createMetrics` has, recorded by the meter; the returned function ends it. */
export function openTelemetryMetrics(
  meter: OtelMeter,
  { observer, lockLabel = ({ namespace }) => namespace, mostValues = 100 }: MetricsOptions,
): () => void {
  const stops: (() => void)[] = []
  const gauges = new ServerGauges(observer, mostValues)
  const counts = new EventCounts({ lockLabel, mostValues }, (set) => {
    for (const family of set.families()) {
      if (family instanceof DurationFamily) mirrorTo(meter, family)
      else stops.push(observe(meter, family))
    }
  })
  stops.push(() => counts.stop())
  if (observer !== undefined) {
    for (const family of gauges.families()) {
      stops.push(observe(meter, family, () => gauges.look()))
    }
  }
  return () => {
    for (const stop of stops) stop()
  }
}

function mirrorTo(meter: OtelMeter, family: DurationFamily): void {
  const histogram = meter.createHistogram(openTelemetryName(family.name), {
    unit: 's',
    description: family.help,
    advice: { explicitBucketBoundaries: [...family.bounds] },
  })
  family.mirror = (labels) => {
    const attributes = attributesOf(family, labels)
    return (ms) => histogram.record(ms / 1_000, attributes)
  }
}

/** Read when metrics are collected: counting costs the same with and without OpenTelemetry. */
function observe(meter: OtelMeter, family: MetricFamily, before?: () => Promise<void>): () => void {
  const name = openTelemetryName(family.name)
  const options = { description: family.help, unit: unitOf(family) }
  const instrument =
    family.type === 'counter'
      ? meter.createObservableCounter(name, options)
      : meter.createObservableGauge(name, options)
  const callback = async (result: {
    observe(value: number, attributes?: OtelAttributes): void
  }): Promise<void> => {
    await before?.()
    for (const { labels, value } of family.samples()) {
      result.observe(value, attributesOf(family, labels))
    }
  }
  instrument.addCallback(callback)
  return () => instrument.removeCallback(callback as never)
}

function unitOf({ name }: MetricFamily): string {
  return name.endsWith('_seconds') ? 's' : '1'
}

function attributesOf({ labels }: MetricFamily, values: readonly string[]): OtelAttributes {
  return Object.fromEntries(
    labels.map((label, at) => [attributeNames[label] ?? `holdfast.${label}`, values[at]]),
  )
}

/** The list of metrics, the dashboard and the alerts: what they name exists, and everything is named. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import type { MetricFamily } from '../../src/observe/metrics/metric-family.ts'
import { createMetrics } from '../../src/observe/metrics/metrics.ts'
import { type Page, readPages } from './checks/pages.ts'
import { codeIn, tableOf } from './checks/tables.ts'

const root = new URL('../../../../', import.meta.url)
const textOf = (path: string): string => readFileSync(new URL(path, root), 'utf8')

const metrics = createMetrics()
const families = new Map((await metrics.collect()).map((family) => [family.name, family]))
metrics.stop()

test('docs/metrics.md lists every metric with its type and labels, and no other', () => {
  const page = readPages().find(({ path }) => path === 'docs/metrics.md') as Page
  const listed = tableOf(page, 'metric').map(([name = '', type = '', labels = '']) => ({
    name: codeIn(name),
    type,
    labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label as string),
  }))
  const real = [...families.values()].map(({ name, type, labels }) => ({
    name,
    type,
    labels: [...labels],
  }))
  expect(listed).toEqual(real)
})

test('names are as Prometheus wants them', () => {
  for (const { name, type, help, labels } of families.values()) {
    expect(name).toMatch(/^holdfast_[a-z_]+$/)
    expect(name.endsWith('_total')).toBe(type === 'counter')
    if (type === 'histogram') expect(name).toMatch(/_seconds$/)
    expect(help).toMatch(/^[A-Z1].*\.$/)
    for (const label of labels) expect(label).toMatch(/^[a-z]+$/)
  }
})

interface Used {
  readonly family: MetricFamily
  /** Labels in its braces. */
  readonly selected: readonly string[]
}

const reserved = new Set(['le'])

/** What an expression asks for. Throws for a metric or a label that does not exist. */
function metricsIn(expression: string): Used[] {
  const used: Used[] = []
  for (const [, name = '', , braces = ''] of expression.matchAll(
    /(holdfast_[a-z_]+)(\{([^}]*)\})?/g,
  )) {
    const histogram = families.get(name.replace(/_(?:bucket|sum|count)$/, ''))
    const family = histogram?.type === 'histogram' ? histogram : families.get(name)
    if (family === undefined || (family.type === 'histogram' && family.name === name)) {
      throw new Error(`no metric ${name}`)
    }
    const selected = [...braces.matchAll(/(\w+)(?:=~|!=|!~|=)"/g)].map(
      ([, label]) => label as string,
    )
    for (const label of selected) {
      if (!family.labels.includes(label)) throw new Error(`${name} has no label ${label}`)
    }
    used.push({ family, selected })
  }
  if (used.length === 0) throw new Error(`nothing of ours: ${expression}`)
  for (const label of groupedBy(expression)) {
    if (reserved.has(label)) continue
    const known = used.some(({ family }) => family.labels.includes(label))
    if (!known) throw new Error(`nothing has the label ${label}: ${expression}`)
  }
  return used
}

function groupedBy(expression: string): string[] {
  return [...expression.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) =>
    list.split(',').map((label) => label.trim()),
  )
}

/** `{{label}}` of a legend, `{{ $labels.label }}` of an annotation. */
function shownIn(text: string): string[] {
  return [...text.matchAll(/\{\{\s*(?:\$labels\.)?([a-z]+)\s*\}\}/g)].map(
    ([, label]) => label as string,
  )
}

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>
  readonly datasource?: { readonly uid: string }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

describe('the dashboard', () => {
  const dashboard = JSON.parse(textOf('docs/observe/grafana-dashboard.json')) as {
    readonly uid: string
    readonly schemaVersion: number
    readonly panels: readonly Panel[]
    readonly templating: { readonly list: readonly { readonly name: string }[] }
  }
  const panels = dashboard.panels.filter(({ type }) => type !== 'row')

  test('asks for metrics and labels that exist', () => {
    for (const { title, targets = [] } of panels) {
      expect([title, targets.length > 0]).toEqual([title, true])
      for (const { expr, legendFormat } of targets) {
        metricsIn(expr)
        expect(groupedBy(expr)).toEqual(expect.arrayContaining(shownIn(legendFormat)))
      }
    }
  })

  test('has panels that do not overlap, and a data source that can be chosen', () => {
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
    const cells = new Set<string>()
    for (const { title, gridPos } of dashboard.panels) {
      const { x, y, w, h } = gridPos
      expect(x + w).toBeLessThanOrEqual(24)
      for (let column = x; column < x + w; column += 1) {
        for (let row = y; row < y + h; row += 1) {
          expect([title, cells.has(`${column},${row}`)]).toEqual([title, false])
          cells.add(`${column},${row}`)
        }
      }
    }
    expect(dashboard.templating.list.map(({ name }) => name)).toEqual(['datasource', 'lock'])
    for (const { datasource } of panels) expect(datasource?.uid).toBe('${datasource}')
  })
})

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly description: string }
}

describe('the alerts', () => {
  const { groups } = parse(textOf('docs/observe/prometheus-alerts.yml')) as {
    readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[]
  }
  const rules = groups.flatMap((group) => group.rules)

  test('ask for metrics and labels that exist, and say what to do', () => {
    expect(rules.length).toBeGreaterThan(15)
    for (const { alert, expr, labels, annotations } of rules) {
      expect(alert).toMatch(/^Holdfast[A-Z]\w+$/)
      metricsIn(expr)
      const { summary, description } = annotations
      const shown = shownIn(summary + description)
      expect(groupedBy(expr)).toEqual(expect.arrayContaining(shown))
      expect(['warning', 'critical']).toContain(labels.severity)
      expect(description).toMatch(/\.$/)
    }
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
    expect(new Set(groups.map(({ name }) => name)).size).toBe(groups.length)
  })

  test('what the server shows is the same from every process, so it is never added up', () => {
    const seen = rules.filter(({ expr }) => expr.includes('holdfast_server_'))
    expect(seen.filter(({ expr }) => !expr.startsWith('max'))).toEqual([])
  })
})

test('control: a metric or a label that does not exist is found', () => {
  expect(() => metricsIn('rate(holdfast_lock_acquired_total[5m])')).toThrow('no metric')
  expect(() => metricsIn('rate(holdfast_lock_wait_seconds[5m])')).toThrow('no metric')
  expect(() => metricsIn('holdfast_leader{lock="a"}')).toThrow('has no label lock')
  expect(() => metricsIn('sum by (user) (holdfast_leader)')).toThrow('nothing has the label user')
  expect(() => metricsIn('up == 0')).toThrow('nothing of ours')
})

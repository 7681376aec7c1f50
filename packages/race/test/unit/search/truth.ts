/** Whether two patterns mean the same, found out in the plainest way: every renaming of what is drawn is tried. */
import { isMoment, type Pattern, replaceAll, type Value } from './ends.ts'

/** Which moments are the same is left out here: `lostMoments`. */
export function meanTheSame(one: Pattern, other: Pattern): boolean {
  const wanted = textOf(other, new Map())
  const names = namesIn(one)
  const kindOf = new Map([...names, ...namesIn(other)])
  const targets = [...namesIn(other).keys()]
  const assign = (left: readonly number[], map: Map<number, number>): boolean => {
    const [name, ...rest] = left
    if (name === undefined) return textOf(one, map) === wanted
    return targets.some((target) => {
      if (kindOf.get(target) !== kindOf.get(name) || [...map.values()].includes(target))
        return false
      return assign(rest, new Map([...map, [name, target]]))
    })
  }
  if (names.size !== targets.length) return false
  return assign([...names.keys()], new Map())
}

function namesIn(pattern: Pattern): Map<number, string> {
  const found = new Map<number, string>()
  replaceAll(pattern, (value) => {
    if (value.is === 'drawn' && !isMoment(value.kind)) found.set(value.name, value.kind)
    return value
  })
  return found
}

function textOf(pattern: Pattern, names: ReadonlyMap<number, number>): string {
  const text = (value: Value): string => {
    if (value.is === 'constant')
      return Object.is(value.value, -0) ? '-0' : JSON.stringify(value.value)
    if (value.is === 'text') return `"${value.parts.map(text).join('')}"`
    if (value.is === 'list') return `[${value.items.map(text).join()}]`
    if (value.is === 'object')
      return `{${value.fields.map(([name, field]) => `${name}:${text(field)}`).join()}}`
    if (isMoment(value.kind)) return `${value.kind} ${value.offset}`
    return `<${value.kind} ${names.get(value.name) ?? value.name}>`
  }
  const tables = pattern.tables.map(({ rows }) =>
    rows.map((row) => row.map(text).join(' | ')).sort(),
  )
  return JSON.stringify([tables, pattern.ends.map(text)])
}

/** Whether some place has a moment that another place lacks, and has it in the other pattern. */
export function losesMoments(pattern: Pattern, serial: Pattern): boolean {
  const [here, there] = [momentsIn(pattern), momentsIn(serial)]
  for (const [place, moments] of here) {
    for (const [other, known] of here) {
      const [left, right] = [there.get(place), there.get(other)]
      if (place === other || left === undefined || right === undefined) continue
      if (isWithin(left, right) && !isWithin(moments, known)) return true
    }
  }
  return false
}

function isWithin(some: ReadonlySet<string>, all: ReadonlySet<string>): boolean {
  return [...some].every((one) => all.has(one))
}

/** By column, or by place in an answer; the places of a list are one. */
function momentsIn(pattern: Pattern): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  replaceAll(pattern, (value, at) => {
    if (value.is !== 'drawn' || !isMoment(value.kind)) return value
    const place = at.replace(/^(\d+)\/\d+\//, '$1/').replace(/\.\d+/g, '')
    found.set(
      place,
      (found.get(place) ?? new Set()).add(`${value.kind} ${value.name} ${value.offset}`),
    )
    return value
  })
  return found
}

/**
 * The circle that makes a result impossible one after the other: each flow of it must have come before the next, and
 * the last before the first.
 */
import type { Anomaly } from './anomaly.ts'
import { type Dependency, dependenciesOf } from './dependencies.ts'
import { changedNothing, type History, nameOf } from './history.ts'
import { ref } from '../words.ts'

/** One sentence for each part of the circle. Empty where the anomaly is none of reads and writes. */
export function cycleOf(anomaly: Anomaly, history: History): string[] {
  const { read, commit, otherRead, write } = anomaly
  if (read === undefined || commit === undefined) return []
  // Of several reasons, that of which the story tells.
  const told = (one: Dependency): number => {
    if (otherRead !== undefined && one.read === otherRead) return 2
    return (one.read ?? one.write) === write ? 1 : 0
  }
  const all = dependenciesOf(history).toSorted((one, other) => told(other) - told(one))
  const first = all.find(
    (one) => one.kind === 'overtaken' && one.read === read && one.commit === commit,
  )
  const back = first && pathBetween(all, first.to, first.from)
  return first && back ? [first, ...back].map((one) => sentenceOf(one, history)) : []
}

/** The shortest way from one flow to another. */
function pathBetween(
  all: readonly Dependency[],
  from: number,
  to: number,
): readonly Dependency[] | undefined {
  const seen = new Set([from])
  let paths: (readonly Dependency[])[] = all.filter((one) => one.from === from).map((one) => [one])
  while (paths.length > 0) {
    const done = paths.find((path) => path.at(-1)?.to === to)
    if (done !== undefined) return done
    const ends = new Set(paths.map((path) => path.at(-1)?.to as number))
    for (const end of ends) seen.add(end)
    paths = paths.flatMap((path) =>
      all
        .filter((one) => one.from === path.at(-1)?.to && !seen.has(one.to))
        .map((one) => [...path, one]),
    )
  }
  return undefined
}

function sentenceOf(one: Dependency, history: History): string {
  const [before, after] = [history.flows[one.from] ?? '?', history.flows[one.to] ?? '?']
  return `${before} before ${after}: ${reasonOf(one, history)}`
}

function reasonOf({ kind, read, write, commit, object }: Dependency, history: History): string {
  const what = nameOf(object, history)
  if (kind === 'overtaken' && read) {
    return `${ref(read)} did not see what ${ref(commit)} made of ${what}`
  }
  const later = read ?? write
  const verb = later?.kind !== 'write' ? 'saw' : changedNothing(later) ? 'met' : 'changed'
  return `${later ? ref(later) : 'it'} ${verb} what ${ref(commit)} had made of ${what}`
}

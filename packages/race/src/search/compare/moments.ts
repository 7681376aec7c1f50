/**
 * Moments that are the same wherever they stand: what a flow was answered is what a row has. Two that are drawn within a
 * run may be equal by accident, so that only the other way counts: what is the same in every serial run, and is not here.
 */
import { type Chance, leavesIn } from './chance.ts'
import type { Node, Prepared } from './prepared.ts'

/** More places than these are not held against each other. */
const mostPlaces = 60

/** Whether a place of the run has a moment that another place lacks, and has in all of these. */
export function breaksMoments(
  chance: Chance,
  run: Prepared,
  serial: readonly Prepared[],
  flows: readonly number[],
): boolean {
  const here = momentsIn(chance, run, flows)
  const there = serial.map((one) => momentsIn(chance, one, flows))
  if (here.size > mostPlaces) return false
  for (const [path, moments] of here) {
    for (const [other, known] of here) {
      if (path === other || isWithin(moments, known)) continue
      const always = there.every((one) => {
        const [left, right] = [one.get(path), one.get(other)]
        return left !== undefined && right !== undefined && isWithin(left, right)
      })
      if (always) return true
    }
  }
  return false
}

function isWithin(some: ReadonlySet<number>, all: ReadonlySet<number>): boolean {
  return [...some].every((moment) => all.has(moment))
}

/** By place, in milliseconds; without places that keep no fractions of a second. */
function momentsIn(
  chance: Chance,
  run: Prepared,
  flows: readonly number[],
): ReadonlyMap<string, ReadonlySet<number>> {
  const found = new Map<string, Set<number>>()
  const coarse = new Set<string>()
  const look = (node: Node): void => {
    for (const { path, parts } of leavesIn(node)) {
      for (const part of parts) {
        if (part.kind !== 'time' || part.ofDay || chance.isUnclear(path)) continue
        if (chance.motionAt(path, part) === undefined) continue
        if (part.grain > 0) coarse.add(path)
        found.set(path, (found.get(path) ?? new Set()).add(Math.floor(part.at)))
      }
    }
  }
  for (const { rows } of run.tables) for (const { cells } of rows) cells.forEach(look)
  for (const flow of flows) {
    const end = run.ends[flow]
    if (end !== undefined) look(end)
  }
  for (const path of coarse) found.delete(path)
  return found
}

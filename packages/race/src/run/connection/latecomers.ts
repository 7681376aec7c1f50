/** Flows of runs that are over, and that still send: something in them is not awaited. */
import { setTimeout } from 'node:timers/promises'
import type { Trouble } from '../../core/model.ts'
import type { Unit } from '../../gate/unit.ts'
import type { FlowIdentity } from './flow-identity.ts'
import { shapeOf } from '../statement/statement-shape.ts'

interface Latecomer {
  readonly flow: number
  /** It cannot have been the seed, the invariant or a recovery with a client of a flow. */
  readonly surely: boolean
}

const late = new WeakSet<FlowIdentity>()

/** It has sent a statement after its run was over. */
export function noteLate(identity: FlowIdentity): void {
  late.add(identity)
}

export function wasLate(identity: FlowIdentity): boolean {
  return late.has(identity)
}

// One exploration at a time: see `takeTurn`.
let first: Latecomer | undefined
let lent = 0

function note(flow: number, surely: boolean): void {
  if (first === undefined || (surely && !first.surely)) first = { flow, surely }
}

/** Whether whoever asks belongs to a run that is over, and had come to its end by itself. */
export function isLate(identity: FlowIdentity | undefined): boolean {
  if (!identity?.over || !identity.ended) return false
  note(identity.flow, true)
  return true
}

/** A unit of a flow that came while no run is under way. */
export function noteBetweenRuns(flow: number, { statements }: Unit): void {
  const writes = statements.some((text) => {
    const { kind, write } = shapeOf(text)
    return write !== undefined || kind === 'lock' || kind === 'unknown'
  })
  if (writes) note(flow, lent === 0)
}

/** While code of the user's runs beside the flows, it may use their clients. */
export async function lend<T>(work: () => Promise<T>): Promise<T> {
  lent += 1
  try {
    return await work()
  } finally {
    lent -= 1
  }
}

/** What is to be told of them; with `suspected`, also if it may have been somebody else. */
export function latecomerTrouble(
  names: readonly string[],
  suspected: 'surely' | 'suspected' = 'surely',
): Trouble | undefined {
  if (first === undefined || (suspected === 'surely' && !first.surely)) return undefined
  const { flow } = first
  return {
    kind: 'outlives-its-end',
    flow,
    message: `Statements of ${names[flow] ?? `flow ${flow}`} came after it had ended: something in it is not awaited. Await it, so that the flow ends when its work does.`,
  }
}

export function forgetLatecomers(): void {
  first = undefined
}

/** How long work may take to show itself that a flow has put off until it had returned. */
const patienceMs = 500

export async function waitForLatecomer(names: readonly string[]): Promise<Trouble | undefined> {
  const deadline = performance.now() + patienceMs
  while (latecomerTrouble(names) === undefined && performance.now() < deadline) await setTimeout(20)
  return latecomerTrouble(names)
}

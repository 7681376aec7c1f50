/** Flows of which nothing can be learnt, whatever their order. */
import type { FlowOutcome, Note, Said, Trouble } from '../core/model.ts'
import { short } from './judge.ts'
import type { SerialRun } from './serial-oracle.ts'

/** Why nothing could race, or what to say although something could. */
export type Futility =
  | { readonly trouble: Trouble }
  /** `about`: the flows of which it would not be so if they got further in any run. */
  | { readonly note: Note; readonly about: readonly number[] }

export function futility(
  flows: readonly string[],
  serial: readonly SerialRun[],
  symmetric: readonly (readonly number[])[] = [],
): Futility | undefined {
  return silent(flows, serial) ?? failing(flows, serial, symmetric)
}

/** Of flows that are alike, an end that all of them have in every order: of such orders only one is run. */
function always<Kind extends FlowOutcome['kind']>(
  serial: readonly SerialRun[],
  alike: readonly number[],
  kind: Kind,
): Extract<FlowOutcome, { readonly kind: Kind }> | undefined {
  const ends = serial.flatMap(({ run }) => alike.map((flow) => run.outcomes[flow]))
  const isOf = (end: FlowOutcome | undefined): end is Extract<FlowOutcome, { kind: Kind }> =>
    end?.kind === kind
  return ends.every(isOf) ? ends.find(isOf) : undefined
}

/** Whoever asked for a race of flows that send nothing has connected them elsewhere. */
function silent(flows: readonly string[], serial: readonly SerialRun[]): Futility | undefined {
  const senders = new Set(serial.flatMap(({ run: { steps } }) => steps.map(({ flow }) => flow)))
  if (senders.size >= 2) return undefined
  const quiet = flows.filter((_, flow) => !senders.has(flow))
  // What it throws now and then is its answer; what it throws each time keeps it from sending.
  const [threw] = quiet.flatMap((name) => always(serial, [flows.indexOf(name)], 'threw') ?? [])
  const stray = serial.find(({ run }) => run.uncontrolled !== undefined)?.run.uncontrolled
  const why =
    threw?.kind === 'threw'
      ? `It threw: ${short(threw.message)}`
      : (stray ?? 'Let it connect with the pool or the url of its context.')
  const message = `${quiet.join(' and ')} sent no statement through the explorer, so nothing could race. ${why}`
  return { trouble: { kind: 'nothing-sent', message } }
}

/** Flows that get nowhere even alone. To be refused may be what is to be looked at; to fail is not. */
function failing(
  flows: readonly string[],
  serial: readonly SerialRun[],
  symmetric: readonly (readonly number[])[],
): Futility | undefined {
  const ends = serial.flatMap(({ run }) => flows.map((_, flow) => run.outcomes[flow]))
  const allSay = (said: Said): boolean =>
    ends.every((end) => end !== undefined && 'said' in end && end.said === said)
  const threw = ends.find((end) => end?.kind === 'threw')
  const how = threw?.kind === 'threw' ? `: ${short(threw.message)}` : ''
  if (allSay('failed')) {
    const message = `Every flow fails in every order of whole flows, so nothing could race${how}. Let each succeed alone first, or say by outcome what this end means.`
    return { trouble: { kind: 'always-fails', message } }
  }
  if (!allSay('refused')) return oneFailing(flows, serial, symmetric)
  const message = `Every flow is refused in every order of whole flows${how}. What they do otherwise is not explored; does the seed prepare what they need?`
  return { note: { kind: 'always-refused', message }, about: [...flows.keys()] }
}

/** One that never gets to its end: what it would do is not explored. */
function oneFailing(
  flows: readonly string[],
  serial: readonly SerialRun[],
  symmetric: readonly (readonly number[])[],
): Futility | undefined {
  const told = flows.flatMap((name, flow) => {
    const alike = symmetric.find((group) => group.includes(flow)) ?? [flow]
    const end = always(serial, alike, 'threw')
    if (end === undefined) return []
    return [{ flow, text: `${name} fails in every order of whole flows: ${short(end.message)}.` }]
  })
  if (told.length === 0) return undefined
  const message = `${told.map(({ text }) => text).join(' ')} What it does otherwise is not explored; does the seed prepare what it needs?`
  return { note: { kind: 'always-fails', message }, about: told.map(({ flow }) => flow) }
}

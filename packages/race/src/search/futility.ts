/** Flows of which nothing can be learnt, whatever their order. */
import type { Note, Said, Trouble } from '../core/model.ts'
import { short } from './judge.ts'
import type { SerialRun } from './serial-oracle.ts'

/** Why nothing could race, or what to say although something could. */
export type Futility = { readonly trouble: Trouble } | { readonly note: Note }

export function futility(
  flows: readonly string[],
  serial: readonly SerialRun[],
): Futility | undefined {
  return silent(flows, serial) ?? failing(flows, serial)
}

/** Whoever asked for a race of flows that send nothing has connected them elsewhere. */
function silent(flows: readonly string[], serial: readonly SerialRun[]): Futility | undefined {
  const senders = new Set(serial.flatMap(({ run: { steps } }) => steps.map(({ flow }) => flow)))
  if (senders.size >= 2) return undefined
  const quiet = flows.filter((_, flow) => !senders.has(flow))
  const threw = serial
    .flatMap(({ run: { outcomes } }) => outcomes)
    .find((outcome) => outcome.kind === 'threw')
  const why =
    threw?.kind === 'threw'
      ? `It threw: ${short(threw.message)}`
      : 'Let it connect with the pool or the url of its context.'
  const message = `${quiet.join(' and ')} sent no statement through the explorer, so nothing could race. ${why}`
  return { trouble: { kind: 'nothing-sent', message } }
}

/** Flows that get nowhere even alone. To be refused may be what is to be looked at; to fail is not. */
function failing(flows: readonly string[], serial: readonly SerialRun[]): Futility | undefined {
  const ends = serial.flatMap(({ run }) => flows.map((_, flow) => run.outcomes[flow]))
  const always = (said: Said): boolean =>
    ends.every((end) => end !== undefined && 'said' in end && end.said === said)
  const threw = ends.find((end) => end?.kind === 'threw')
  const how = threw?.kind === 'threw' ? `: ${short(threw.message)}` : ''
  if (always('failed')) {
    const message = `Every flow fails in every order of whole flows, so nothing could race${how}. Let each succeed alone first, or say by outcome what this end means.`
    return { trouble: { kind: 'always-fails', message } }
  }
  if (!always('refused')) return oneFailing(flows, serial)
  const message = `Every flow is refused in every order of whole flows${how}. What they do otherwise is not explored; does the seed prepare what they need?`
  return { note: { kind: 'always-refused', message } }
}

/** One that never gets to its end: what it would do is not explored. */
function oneFailing(flows: readonly string[], serial: readonly SerialRun[]): Futility | undefined {
  const told = flows.flatMap((name, flow) => {
    const ends = serial.map(({ run }) => run.outcomes[flow])
    const [end] = ends
    if (end?.kind !== 'threw' || !ends.every((one) => one?.kind === 'threw')) return []
    return [`${name} fails in every order of whole flows: ${short(end.message)}.`]
  })
  if (told.length === 0) return undefined
  const message = `${told.join(' ')} What it does otherwise is not explored; does the seed prepare what it needs?`
  return { note: { kind: 'always-fails', message } }
}

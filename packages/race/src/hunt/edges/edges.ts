/**
 * Finds the edge of a limit: rows from which a call is accepted once, and refused when it is called again. Tests leave
 * data far away from limits, and two calls get in each other's way only where one of them is to be refused.
 */
import { times } from '../../report/words.ts'
import type { Saved } from '../../run/state/snapshot.ts'
import type { Attempt, Tried } from '../prove/attempt.ts'
import { type Field, fieldsOf } from './fields.ts'
import type { Call, Input } from '../model.ts'
import { guessRefusal, type Refusals, shapeOf } from './refusals.ts'
import type { Variation } from './vary.ts'

/** How often a call is repeated at most. */
const mostRepeats = 30
/** Places of an input that are given other values. */
export const mostVariations = 3
/** How often an amount is doubled at most. */
const mostDoublings = 24
/** Other answers than the first one that are followed up. */
const mostTurns = 2

/** Rows from which either input is accepted, and the other one after it refused. */
export interface Edge {
  readonly state: Saved
  readonly inputs: readonly [Input, Input]
  /** How it was reached, for people. */
  readonly from: string
  /** False if the other one is only answered otherwise, and nothing says that this is a refusal. */
  readonly isLimit: boolean
}

export interface Ground {
  take(): Promise<Saved>
  putBack(saved: Saved): Promise<void>
  readonly attempt: Attempt
  /** The time for all this is over. */
  isOver(): boolean
}

/** What looking for edges needs beside that. */
export interface EdgeGround extends Ground {
  readonly refusals: Pick<Refusals, 'isOpen' | 'learn'>
  /** Told how the search ended, if it has met no refusal: `30 calls in a row were accepted`. */
  gaveUp(how: string): void
}

/** The edges of one call, the likeliest first. */
export async function edgesOf(
  call: Call,
  variations: readonly Variation[],
  ground: EdgeGround,
): Promise<readonly Edge[]> {
  const repeated = await byInputs(call, () => call.input, ground, 'it')
  const edges = [...repeated]
  // Where the second one is refused already, only another value may come to a limit.
  const isLimit = repeated.some((edge) => edge.isLimit && edge.state !== call.before)
  for (const { path, input } of isLimit ? [] : variations.slice(0, mostVariations)) {
    if (ground.isOver()) break
    const nth = (n: number): Input | undefined => (n === 0 ? call.input : input(n))
    for (const edge of await byInputs(call, nth, ground, `it with other values of ${path}`)) {
      // A value that is refused wherever it comes first has met no limit.
      if (await isFirstAccepted(call, edge, ground)) edges.push(edge)
    }
  }
  if (!edges.some((edge) => edge.isLimit)) {
    for (const field of fieldsOf(call.input).filter(isAmount)) {
      if (ground.isOver()) break
      edges.push(...(await byAmount(call, field, ground)))
    }
  }
  return edges.toSorted((one, other) => Number(other.isLimit) - Number(one.isLimit))
}

async function isFirstAccepted(
  { send }: Call,
  { state, inputs: [, second] }: Edge,
  { putBack, attempt }: Ground,
): Promise<boolean> {
  await putBack(state)
  return (await attempt(send, second)).said === 'accepted'
}

/** A call that was accepted, and the place in the row of calls from which answers are other ones than before. */
interface Turn {
  readonly at: number
  readonly second: Input
  readonly isLimit: boolean
}

/** Calls with one input after the other, until one is refused; an edge is before the last that was answered as ever. */
async function byInputs(
  call: Call,
  nth: (n: number) => Input | undefined,
  ground: EdgeGround,
  what: string,
): Promise<readonly Edge[]> {
  const { putBack, attempt, isOver } = ground
  await putBack(call.before)
  const made: Input[] = []
  const answers: unknown[] = []
  const shapes = new Set<string>()
  const turns: Turn[] = []
  const words = nth(0) === nth(1) ? 'words' : 'no words'
  while (!isOver()) {
    const input = made.length < mostRepeats ? nth(made.length) : undefined
    if (input === undefined) {
      ground.gaveUp(`${made.length} calls in a row were accepted`)
      break
    }
    const { said, answer } = await attempt(call.send, input)
    if (said === 'failed') {
      ground.gaveUp(`after ${made.length} calls that were accepted the next one failed`)
      break
    }
    if (said === 'refused') {
      turns.unshift({ at: made.length, second: input, isLimit: true })
      break
    }
    const shape = shapeOf(answer, words)
    const isOther = made.length > 0 && !shapes.has(shape) && turns.length < mostTurns
    shapes.add(shape)
    const look = isOther && (await lookAgain(call, { input, answer, answers }, ground))
    if (look && look !== 'nothing')
      turns.push({ at: made.length, second: input, isLimit: look === 'refusal' })
    if (look === 'refusal') break
    made.push(input, ...(isOther ? [input] : []))
    answers.push(answer)
  }
  const edges: Edge[] = []
  for (const turn of turns.toSorted((one, other) => Number(other.isLimit) - Number(one.isLimit))) {
    const edge = await edgeAt(call, made, turn, ground, what)
    if (edge) edges.push(edge)
  }
  return edges
}

async function edgeAt(
  call: Call,
  made: readonly Input[],
  { at, second, isLimit }: Turn,
  { take, putBack, attempt }: Ground,
  what: string,
): Promise<Edge | undefined> {
  const last = made[at - 1]
  if (last === undefined) return undefined
  const inputs = [last, second] as const
  const count = at - 1
  if (count === 0) return { state: call.before, inputs, from: 'the rows of the recording', isLimit }
  await putBack(call.before)
  for (const input of made.slice(0, count)) await attempt(call.send, input)
  return {
    state: await take(),
    inputs,
    from: `the rows after ${what} ran ${times(count, 'time')}`,
    isLimit,
  }
}

interface Other {
  readonly input: Input
  /** What was answered, and what was answered before, to calls that were accepted. */
  readonly answer: unknown
  readonly answers: readonly unknown[]
}

/**
 * An accepted call was answered otherwise than those before it. It is called once more: if nobody has said what a refusal
 * is, calls before it changed rows, and this one changes none, it is one. If nothing at all changes rows, it is nothing.
 */
async function lookAgain(
  { name, send, before }: Call,
  { input, answer, answers }: Other,
  { take, attempt, refusals }: EdgeGround,
): Promise<'refusal' | 'turn' | 'nothing'> {
  const once = await take()
  const again = await attempt(send, input)
  if (sameRows(before, once)) return 'nothing'
  const rule = refusals.isOpen(answer) ? guessRefusal(answers, answer) : undefined
  if (rule?.isRefusal(again.answer) !== true || !sameRows(once, await take())) return 'turn'
  refusals.learn(name, rule)
  return 'refusal'
}

function sameRows(one: Saved, other: Saved): boolean {
  const digests = ({ tables }: Saved): string => tables.map(({ digest }) => digest).join()
  return digests(one) === digests(other)
}

/** Doubles an amount until it is too much: of the last that was accepted there is no room for two. */
async function byAmount(call: Call, field: Field, ground: EdgeGround): Promise<readonly Edge[]> {
  const { putBack, attempt, isOver, take, refusals } = ground
  let amount = Number(field.value)
  /** As it was recorded, if that changes rows. */
  let first: Tried | undefined
  for (let doubled = 0; doubled < mostDoublings && !isOver(); doubled += 1) {
    const input = field.with(typeof field.value === 'number' ? amount : String(amount))
    await putBack(call.before)
    const one = await attempt(call.send, input)
    if (one.said === 'failed') return []
    if (one.said === 'refused') break
    const { answer } = one
    if (doubled === 0 && !sameRows(call.before, await take())) first = one
    const isOther = first && shapeOf(answer, 'words') !== shapeOf(first.answer, 'words')
    if (first && isOther === true && sameRows(call.before, await take())) {
      const rule = refusals.isOpen(answer) ? guessRefusal([first.answer], answer) : undefined
      if (rule) refusals.learn(call.name, rule)
      break
    }
    const other = await attempt(call.send, input)
    const from = `the rows of the recording, with ${field.path} ${amount}`
    const edge = { state: call.before, inputs: [input, input], from } as const
    if (other.said === 'refused') return [{ ...edge, isLimit: true }]
    if (other.said === 'accepted' && shapeOf(other.answer, 'words') !== shapeOf(answer, 'words')) {
      const look = await lookAgain(call, { input, answer: other.answer, answers: [answer] }, ground)
      if (look !== 'nothing') return [{ ...edge, isLimit: look === 'refusal' }]
    }
    amount *= 2
  }
  return []
}

/** What may be more or less; a key is not doubled, because what is bound to a key is varied. */
function isAmount({ value }: Field): boolean {
  return Number.isFinite(Number(value)) && Number(value) > 0 && String(value).length < 12
}

import { barrier } from '@holdfast/testkit'
import {
  canGive,
  type HoldPart,
  zero,
} from '../../packages/holdfast/test/support/ledger-accounts.ts'
import type { Answer, Command } from '../../packages/holdfast/test/support/ledger-command.ts'
import type { LedgerModel } from '../../packages/holdfast/test/support/ledger-model.ts'
import { same, type Step } from './ledger-model-history.ts'
import { sameAnswer } from './ledger-model-known.ts'
import { expectSame, Parting, type Playing } from './ledger-model-lane.ts'

interface Played {
  readonly command: Command
  readonly answer: Answer
}

/** A place in the order of an account: after this movement; what makes none comes after the one it saw. */
interface Place {
  readonly account: string
  readonly at: number
}

/**
 * Commands of several connections at the same moment of the clock. What they were told must be what the
 * model says to the same commands in some order; the numbers of the movements tell which.
 */
export async function playAtOnce(
  playing: Playing,
  step: Step & { path: 'at once' },
): Promise<void> {
  const { model } = playing
  const since = new Map([...model.accounts.all()].map((one) => [one.name, one.sequence]))
  const played = await play(playing, step)
  inSomeOrder(playing, played)
  await playing.player.ask({ act: 'sweep' })
  model.sweep()
  for (const one of played) judgeRest(playing, one, since)
  await adopt(playing)
}

async function play(
  { lane, player }: Playing,
  { commands, workers, coalesced }: Step & { path: 'at once' },
): Promise<Played[]> {
  if (coalesced) {
    return await Promise.all(
      commands.map(async (command) => ({ command, answer: await player.play(command) })),
    )
  }
  const together = barrier(workers)
  const lists = Array.from({ length: workers }, async (_, worker) => {
    const kernel = lane.workers[worker]
    if (kernel === undefined) throw new Error(`there is no worker ${worker}`)
    const own = player.with(kernel)
    const answers: Played[] = []
    await together()
    for (let at = worker; at < commands.length; at += workers) {
      const command = commands[at] as Command
      answers.push({ command, answer: await own.play(command) })
    }
    return answers
  })
  return (await Promise.all(lists)).flat()
}

/** What changed something, or found a hold ended as it wanted. */
function isApplied({ command, answer }: Played): boolean {
  return answer.ok && !(answer.replayed && 'id' in command)
}

/** `isKnown` is false as long as something that the command names is not there. */
function placesOf(
  model: LedgerModel,
  { command, answer }: Played,
): { readonly places: readonly Place[]; readonly isKnown: boolean } {
  const lines = model.linesFor(command)
  if (lines.length !== answer.lines.length) return { places: [], isKnown: false }
  const places = lines.flatMap(({ account, part }, at) => {
    const { sequence } = answer.lines[at] ?? zero
    // Also if the clock has gone back since.
    const isExpired =
      part !== undefined && (part.state === 'expired' || part.expiresAt <= model.accounts.now)
    const isIgnored = command.act === 'settle' && command.late === 'ignore' && isExpired
    const isLater = answer.replayed || command.act === 'extend' || isIgnored
    // What had ended before may be found so at any time since.
    if (account === undefined || (answer.replayed && isOver(part))) return []
    return [{ account, at: isLater ? sequence + 0.5 : sequence }]
  })
  return { places, isKnown: lines.every(({ account }) => account !== undefined) }
}

function isOver(part: HoldPart | undefined): boolean {
  return part !== undefined && part.state !== 'open' && part.state !== 'expired'
}

/** Of two that extend a hold, the one that was told the earlier time came first; of equal ones, the longer. */
function byExpiry(a: Played, b: Played): number {
  const [one = 0, other = 0] = [a.answer.expiresAt, b.answer.expiresAt]
  const ttl = ({ command }: Played): number => (command.act === 'extend' && command.ttlMs) || 0
  return one - other || ttl(b) - ttl(a)
}

/** Applies them to the model in an order that agrees with the numbers of every account. */
function inSomeOrder(playing: Playing, played: readonly Played[]): void {
  const { model } = playing
  const left = new Set(played.filter(isApplied).toSorted(byExpiry))
  while (left.size > 0) {
    const places = new Map([...left].map((one) => [one, placesOf(model, one)]))
    const first = new Map<string, number>()
    for (const { account, at } of [...places.values()].flatMap((one) => one.places)) {
      first.set(account, Math.min(first.get(account) ?? Infinity, at))
    }
    const next = [...left].find((one) => {
      const own = places.get(one)
      return (
        own?.isKnown === true &&
        own.places.every(({ account }) =>
          own.places.some((place) => place.account === account && place.at === first.get(account)),
        )
      )
    })
    if (next === undefined) {
      throw new Parting('order', [...left], 'an order in which one of these is next')
    }
    left.delete(next)
    const [modelled] = model.call([next.command])
    if (
      modelled === undefined ||
      !sameAnswer(playing.lane.known, next.command, next.answer, modelled)
    ) {
      throw new Parting(`answer to ${next.command.act} at once`, next, {
        command: next.command,
        answer: modelled,
      })
    }
  }
}

/** Repetitions and refusals: true of a moment, or for good. */
function judgeRest(
  { model, lane: { known } }: Playing,
  one: Played,
  since: ReadonlyMap<string, number>,
): void {
  const { command, answer } = one
  if (isApplied(one)) return
  if (answer.reason === 'insufficient') {
    if (!wasShort(model, one, since)) throw new Parting('refusal', one, 'enough, all the time')
    return
  }
  // Before what it names was there, or before it was settled.
  const isPassing = ['not-found', 'over-refund', 'too-large'].includes(answer.reason ?? '')
  if (isPassing || answer.state === 'expired') return
  const [final] = model.clone().call([command])
  const judged = (given: Answer | undefined): unknown => {
    if (given?.ok !== true) return [given?.reason, given?.field, given?.state]
    return untimed(given)
  }
  const isMixed = new Set(answer.lines.map(({ refusal }) => refusal)).size > 1
  if (isMixed && !answer.ok) return
  const isSame = final !== undefined && answer.ok && final.ok
  if (isSame && sameAnswer(known, command, untimed(answer), untimed(final))) return
  const sides = [answer, final].map((given) => ({ command, told: judged(given) }))
  expectSame(`end of ${command.act}`, sides[0], sides[1])
}

/** When a hold expires may have been extended since. */
function untimed(answer: Answer): Answer {
  return { ...answer, expiresAt: undefined }
}

/**
 * The numbers of each line are those after some movement of its account, and the refused ones were short
 * then or before, since the commands began.
 */
function wasShort(
  model: LedgerModel,
  { command, answer }: Played,
  since: ReadonlyMap<string, number>,
): boolean {
  if (command.act !== 'move') return true
  const lines = model.linesFor(command)
  return lines.every(({ account, amount, limit, everyUs }, at) => {
    const told = answer.lines[at]
    if (account === undefined || told === undefined) return true
    const moved = model.accounts.movements.get(account) ?? []
    const states = [{ after: zero, refilledAt: undefined, pinned: false }, ...moved].filter(
      ({ after }) => after.sequence <= told.sequence,
    )
    const last = states.at(-1)?.after ?? zero
    const { credited, debited, held, sequence } = last
    if (!same([credited, debited, held, sequence], numbersOf(told))) return false
    const isAlone = lines.filter((line) => line.account === account).length === 1
    if (told.refusal !== 'insufficient' || !isAlone) return true
    // What is for other features is told of the first line alone.
    const isFirst = answer.lines.findIndex(({ refusal }) => refusal !== undefined) === at
    if (!isFirst && model.accounts.grants.get(account)?.isRestricted === true) return true
    const { apart = 0 } = answer
    return states
      .filter(({ after }) => after.sequence >= (since.get(account) ?? 0))
      .some(
        ({ after, refilledAt, pinned }) =>
          canGive({ ...after, refilledAt, pinned }, limit, everyUs, model.accounts.now) - apart <
          Math.abs(amount),
      )
  })
}

function numbersOf({ credited, debited, held, sequence }: Answer['lines'][number]): number[] {
  return [credited, debited, held, sequence]
}

/**
 * When an account was looked at last for what is due, and who opened it, is up to who came first, one that
 * was refused included: that is taken over from the ledger.
 */
async function adopt({ lane, player, model }: Playing): Promise<void> {
  const { schema, pool } = lane
  const { rows } = await pool.query<Adopted>({
    name: `adopt_${schema}`,
    text: `SELECT a.key, a.key || coalesce('@' || ${schema}.micros(a.window_start), '') AS name, b.allowance,
        ${schema}.micros(b.moved_at) AS moved, ${schema}.micros(b.due_at) AS due
      FROM ${schema}.account a JOIN ${schema}.balance b ON b.bucket = a.bucket AND b.account = a.id
      WHERE a.bucket = ${schema}.bucket_of($1) AND a.scope = $1`,
    values: [player.scope],
  })
  for (const { key, name, allowance, moved, due } of rows) {
    const terms = model.options.termsOf(key)
    const standing = model.accounts.open(name, key, terms, Number(allowance))
    standing.movedAt = moved === null ? -Infinity : Number(moved)
    standing.dueAt = due === null ? Infinity : Number(due)
  }
}

interface Adopted {
  readonly key: string
  readonly name: string
  readonly allowance: string
  readonly moved: string | null
  readonly due: string | null
}

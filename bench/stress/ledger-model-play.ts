import type { PoolClient } from 'pg'
import type {
  Answer,
  Command,
  Single,
} from '../../packages/holdfast/test/support/ledger-command.ts'
import { LedgerModel } from '../../packages/holdfast/test/support/ledger-model.ts'
import {
  balance,
  grantsOf,
  peek,
  setLimit,
} from '../../packages/holdfast/test/support/ledger-model-single.ts'
import { LedgerPlayer } from '../../packages/holdfast/test/support/ledger-player.ts'
import { setClock } from './ledger-model-clock.ts'
import { playAtOnce } from './ledger-model-at-once.ts'
import {
  type Difference,
  type History,
  isSingle,
  plain,
  type Step,
} from './ledger-model-history.ts'
import { sameAnswer } from './ledger-model-known.ts'
import { expectSame, type Lane, Parting, type Playing } from './ledger-model-lane.ts'
import { modelState, stateDifference, storedState } from './ledger-model-state.ts'

/** Plays a history in a new scope and compares every answer, and the state at its end. */
export async function playHistory(lane: Lane, history: History): Promise<Difference | undefined> {
  const termsOf = (key: string): History['terms'][string] => history.terms[key] ?? {}
  const player = new LedgerPlayer(lane.kernel, { schema: lane.schema, termsOf, exact: true })
  const model = new LedgerModel({
    termsOf,
    exact: true,
    rankOf: (account) => player.rankOf(account),
  })
  const playing: Playing = { lane, player, model }
  let steps = 0
  try {
    await playOne(playing, { act: 'clock', us: history.startUs })
    for (const step of history.steps) {
      steps += 1
      await playStep(playing, step)
    }
    await compareStates(playing)
    return undefined
  } catch (error) {
    if (!(error instanceof Parting)) {
      return { sort: 'error', steps, told: `an error: ${describe(error)}`, modelled: 'no error' }
    }
    const text = (value: unknown): string => JSON.stringify(plain(value))
    return { sort: error.sort, steps, told: text(error.told), modelled: text(error.modelled) }
  }
}

function describe(error: unknown): string {
  const { message = String(error), cause } = error as { message?: string; cause?: unknown }
  return cause === undefined ? message : `${message} (${describe(cause)})`
}

async function compareStates({ lane, player, model }: Playing): Promise<void> {
  const stored = await storedState(lane.pool, lane.schema, player.scope)
  const differences = stateDifference(stored, modelState(model))
  if (differences.length === 0) return
  const side = (name: string): string[] => differences.filter((row) => row.startsWith(name))
  throw new Parting('state', side('ledger'), side('model'))
}

async function playStep(playing: Playing, step: Step): Promise<void> {
  const { lane, player, model } = playing
  switch (step.path) {
    case 'alone':
      await playOne(playing, step.commands[0])
      break
    case 'joined':
      await playJoined(playing, step)
      break
    case 'together': {
      const told = await player.playTogether(lane.driver.alone, step.commands)
      compareAll(playing, step.commands, told, model.call(step.commands))
      break
    }
    case 'plain':
    case 'new': {
      const told =
        step.path === 'plain'
          ? await player.playPlain(lane.driver.alone, step.commands)
          : await player.playNew(lane.driver.alone, step.commands)
      const isDone = (_: unknown, at: number): boolean => told[at] !== undefined
      const done = step.commands.filter(isDone)
      compareAll(playing, done, told.filter(isDone), model.call(done))
      const left = step.commands.filter((_, at) => told[at] === undefined)
      if (left.length === 0) break
      const then = await player.playTogether(lane.driver.alone, left)
      compareAll(playing, left, then, model.call(left))
      break
    }
    case 'at once':
      await playAtOnce(playing, step)
      await compareStates(playing)
      break
  }
}

function compareAll(
  { lane }: Playing,
  commands: readonly Command[],
  told: readonly (Answer | undefined)[],
  modelled: readonly Answer[],
): void {
  const isSame = commands.every((command, at) => {
    const [one, other] = [told[at], modelled[at]]
    if (one === undefined || other === undefined) return false
    return sameAnswer(lane.known, command, one, other, commands.length > 1)
  })
  const acts = commands.map(({ act }) => act).join(', ')
  if (!isSame) throw new Parting(`answer to ${acts}`, told, modelled)
}

async function playOne(
  playing: Playing,
  command: Command | Single,
  tx?: PoolClient,
): Promise<void> {
  const { lane, player, model } = playing
  if (!isSingle(command)) {
    const told = await player.play(command, tx)
    compareAll(playing, [command], [told], model.call([command]))
    return
  }
  if (command.act === 'clock') {
    await setClock(tx ?? lane.pool, lane.schema, command.us)
    model.accounts.now = command.us
    return
  }
  const told = await player.ask(command, tx)
  const modelled = answerTo(model, command)
  const sort = `answer to ${command.act}`
  if (command.act === 'grants') {
    expectSame(sort, (told as string[]).toSorted(), (modelled as string[]).toSorted())
  } else expectSame(sort, told, modelled)
}

function answerTo(model: LedgerModel, command: Exclude<Single, { act: 'clock' }>): unknown {
  switch (command.act) {
    case 'limit':
      return setLimit(model, command)
    case 'peek':
      return peek(model, command)
    case 'balance':
      return balance(model, command.key)
    case 'grants':
      return grantsOf(model, command.key)
    case 'sweep':
      model.sweep()
      return undefined
  }
}

async function playJoined(playing: Playing, step: Step & { path: 'joined' }): Promise<void> {
  const before = step.commits ? undefined : playing.model.clone()
  const client = await playing.lane.pool.connect()
  try {
    await client.query('BEGIN')
    for (const command of step.commands) await playOne(playing, command, client)
  } finally {
    await client.query(step.commits ? 'COMMIT' : 'ROLLBACK')
    client.release()
  }
  if (before === undefined) return
  // The clock is set for good: it is no part of the transaction.
  before.accounts.now = playing.model.accounts.now
  playing.model = before
}

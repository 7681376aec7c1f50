import type { FlowOutcome, Said, Trouble } from '../../core/model.ts'
import { errorTree, type SeenAnswer, treeText } from './answer-tree.ts'
import { sqlstateOf } from './error-layers.ts'
import { saidBy, saidByError } from './said.ts'

/** How flows ended, in full; an outcome has only words for people. */
const trees = new WeakMap<FlowOutcome, SeenAnswer>()

/** What a flow returned or threw; undefined of an outcome that comes from elsewhere. */
export function seenIn(outcome: FlowOutcome): SeenAnswer | undefined {
  return trees.get(outcome)
}

function remembered(outcome: FlowOutcome, seen: SeenAnswer): FlowOutcome {
  trees.set(outcome, seen)
  return outcome
}

/** An error as it is, if it lets itself be read; getters and proxies may throw. */
export function legible(error: unknown): unknown {
  try {
    if (!(error instanceof Error)) return error
    errorTree(error)
    const said: unknown[] = [error.name, error.message]
    if (said.every((one) => typeof one === 'string')) {
      saidByError(error, sqlstateOf(error))
      return error
    }
    return unreadable()
  } catch {
    return unreadable()
  }
}

function unreadable(): Error {
  return new Error('an error that cannot be read: its name, its message or a field of it throws')
}

/** How a flow that returned is remembered: its value as text, and what that says unless somebody knows it better. */
export function returned(
  answer: unknown,
  seen: SeenAnswer,
  said: Said = saidBy(answer),
): FlowOutcome {
  return remembered({ kind: 'returned', value: treeText(seen.tree), said }, seen)
}

export function threw(error: unknown, seen: SeenAnswer, said?: Said): FlowOutcome {
  if (!(error instanceof Error)) {
    const message = treeText(seen.tree)
    return remembered(
      { kind: 'threw', name: typeof error, message, said: said ?? saidBy(error) },
      seen,
    )
  }
  const sqlstate = sqlstateOf(error)
  const outcome: FlowOutcome = {
    kind: 'threw',
    name: error.name,
    message: error.message,
    said: said ?? saidByError(error, sqlstate),
    ...(sqlstate !== undefined && { sqlstate }),
  }
  return remembered(outcome, { tree: errorTree(error), unseen: [] })
}

/**
 * Errors that come from being kept waiting by the schedule, and say nothing about the flow: a client
 * gave up on its transaction, or on getting a connection.
 */
export function troubleIn(reason: unknown, flow: number, name: string): Trouble | undefined {
  if (!(reason instanceof Error)) return undefined
  const code: unknown = Reflect.get(reason, 'code')
  if (code === 'P2028') {
    return {
      kind: 'client-timeout',
      flow,
      message:
        `${name} was kept waiting until Prisma gave up on its transaction (P2028). ` +
        'Give the client transactionOptions: { maxWait: 60_000, timeout: 60_000 } for this test.',
    }
  }
  if (
    code === 'P2024' ||
    /timeout exceeded when trying to connect|acquiring a connection/i.test(reason.message)
  ) {
    return {
      kind: 'pool-too-small',
      flow,
      message:
        `${name} did not get a connection: ${reason.message}. ` +
        'Give each flow a pool of its own, or a pool with a connection for every flow.',
    }
  }
  if (/^Query read timeout$/.test(reason.message)) {
    return {
      kind: 'client-timeout',
      flow,
      message: `${name} was kept waiting until its query_timeout. Leave query_timeout unset for this test.`,
    }
  }
  return undefined
}

import type { Choice, Decision, Run, Step } from '../../src/core/model.ts'

/**
 * Decides by a script such as `alice bob bob alice`, one word per decision; when it is used up, or
 * the flow cannot go on, the first that can goes on. A word may name a connection: `alice/1`, and end
 * with `!` for a crash or `?` for a lost answer.
 */
export function script(
  flows: readonly string[],
  order: string,
): (decision: Decision, steps: readonly Step[]) => Choice {
  const moves = order.split(/\s+/).filter((move) => move !== '')
  return (decision) => {
    const move = moves.shift() ?? ''
    const [name = '', lane] = move.replace(/[!?]$/, '').split('/')
    const pending =
      decision.enabled.find(
        ({ choice }) =>
          flows[choice.flow] === name && (lane === undefined || choice.lane === Number(lane)),
      ) ?? decision.enabled[0]
    if (!pending) throw new Error('nothing to decide')
    if (move.endsWith('!')) return { ...pending.choice, action: 'crash' }
    if (move.endsWith('?')) return { ...pending.choice, action: 'lose-answer' }
    return pending.choice
  }
}

/** A run in one line per step: who, what, and whom it waited for. */
export function lines(run: Run, flows: readonly string[]): string[] {
  return run.steps.map((step) => {
    const [text = step.choice.action] = step.statements
    const waited = step.waitedFor.map((flow) => ` waits for ${flows[flow] ?? flow}`).join('')
    const error = step.answer.error ? ` ${step.answer.error.sqlstate}` : ''
    const half = step.half === 'whole' ? '' : ` (${step.half})`
    return `${flows[step.flow] ?? step.flow}: ${text}${half}${waited}${error}`
  })
}

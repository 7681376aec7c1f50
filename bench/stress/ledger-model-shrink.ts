import type { Difference, History, Step } from './ledger-model-history.ts'

/** A history as short as can be that still differs; what is left out, is left out for good. */
export async function shrink(
  history: History,
  found: Difference,
  play: (history: History) => Promise<Difference | undefined>,
  /** How many shorter histories are tried at most. */
  mostTries: number,
): Promise<{ readonly history: History; readonly difference: Difference }> {
  let best = {
    history: { ...history, steps: history.steps.slice(0, found.steps) },
    difference: found,
  }
  let tries = 0
  const attempt = async (steps: readonly Step[]): Promise<boolean> => {
    if (tries >= mostTries || steps.length === 0) return false
    tries += 1
    const shorter = { ...history, steps }
    const difference = await play(shorter)
    if (difference?.sort !== found.sort) return false
    best = { history: { ...shorter, steps: steps.slice(0, difference.steps) }, difference }
    return true
  }
  for (
    let size = Math.ceil(best.history.steps.length / 2);
    size >= 1;
    size = Math.floor(size / 2)
  ) {
    for (let at = 0; at < best.history.steps.length; ) {
      const { steps } = best.history
      const isShorter = await attempt([...steps.slice(0, at), ...steps.slice(at + size)])
      if (!isShorter) at += size
    }
  }
  for (let at = 0; at < best.history.steps.length; at += 1) {
    const step = best.history.steps[at] as Step
    for (const shorter of shorterSteps(step)) {
      const { steps } = best.history
      const next = [...steps.slice(0, at), shorter, ...steps.slice(at + 1)]
      if (await attempt(next)) {
        at -= 1
        break
      }
    }
  }
  return best
}

/** The same with a command, or a line of one, less. */
function* shorterSteps(step: Step): Generator<Step> {
  const { commands } = step
  if (commands.length > 1) {
    for (const at of commands.keys()) {
      yield { ...step, commands: commands.toSpliced(at, 1) } as Step
    }
  }
  for (const [at, command] of commands.entries()) {
    if (command.act !== 'move' || command.lines.length < 2) continue
    for (const line of command.lines.keys()) {
      const lines = command.lines.toSpliced(line, 1)
      yield { ...step, commands: commands.with(at, { ...command, lines } as never) } as Step
    }
  }
}

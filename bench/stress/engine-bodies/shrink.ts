import { cutDown } from '../bodies-cut-down.ts'
import type { Lie } from './judge.ts'
import type { Action, Body } from './model.ts'

/** The shortest body that still makes a lie of the same sort. */
export function shrink(
  body: Body,
  first: Lie,
  attempt: (body: Body) => Promise<Lie | undefined>,
): Promise<{ readonly body: Body; readonly lie: Lie }> {
  return cutDown(body, first, { candidates, attempt }, { runs: 150, ms: 40_000 })
}

/** Plainer bodies, the boldest cuts first. */
function* candidates(body: Body): Generator<Body> {
  for (const actions of fewer(body.actions)) yield { ...body, actions }
  if (body.late.length > 0) yield { ...body, late: [] }
  if (body.entry !== 'tx.run' && body.entry !== 'guard') yield { ...body, entry: 'tx.run' }
  for (const [index, action] of body.actions.entries()) {
    for (const mark of ['by', 'swallow', 'firstOnly'] as const) {
      if (action[mark] === undefined) continue
      const { [mark]: _, ...without } = action
      yield { ...body, actions: put(body.actions, index, without as Action) }
    }
  }
}

function* fewer(actions: readonly Action[]): Generator<readonly Action[]> {
  for (let size = Math.ceil(actions.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let from = 0; from < actions.length; from += size)
      yield [...actions.slice(0, from), ...actions.slice(from + size)]
  }
  for (const [index, action] of actions.entries()) {
    if (action.do !== 'nested') continue
    yield put(actions, index, ...action.actions)
    for (const inner of fewer(action.actions))
      yield put(actions, index, { ...action, actions: inner })
  }
}

function put(
  actions: readonly Action[],
  index: number,
  ...instead: readonly Action[]
): readonly Action[] {
  return [...actions.slice(0, index), ...instead, ...actions.slice(index + 1)]
}

/** The body as a list, to be read and to be tried. */
export function printBody({ actions, late }: Body): string {
  const lines: string[] = []
  const write = (all: readonly Action[], indent: string): void => {
    for (const action of all) {
      const { do: what, swallow, firstOnly, by, ...rest } = action
      const { actions: inner, ...more } = rest as { readonly actions?: readonly Action[] }
      const marks = [
        ...Object.values(more).map((each) => JSON.stringify(each)),
        ...(by === undefined ? [] : [`by ${by}`]),
        ...(firstOnly === true ? ['only at first'] : []),
        ...(swallow === true ? ['swallowed'] : []),
      ]
      lines.push(`${indent}- ${what}${marks.length === 0 ? '' : ` ${marks.join(', ')}`}`)
      if (inner !== undefined) write(inner, `${indent}  `)
    }
  }
  write(actions, '')
  for (const { when, what } of late) lines.push(`- then (${when}): ${what}`)
  return lines.join('\n')
}

import { cutDown } from './bodies-cut-down.ts'
import type { Lie } from './bodies-judge.ts'
import type { Action, Body } from './bodies-model.ts'

/** Runs a body and gives the lie that it makes, if it does. */
export type Try = (body: Body) => Promise<Lie | undefined>

/** The shortest body that still makes a lie of the same sort. */
export function shrink(
  body: Body,
  first: Lie,
  attempt: Try,
): Promise<{ readonly body: Body; readonly lie: Lie }> {
  return cutDown(body, first, { candidates, attempt }, { runs: 250, ms: 60_000 })
}

/** Plainer bodies, the boldest cuts first. */
function* candidates(body: Body): Generator<Body> {
  if (body.twin) yield { ...body, twin: false }
  for (const actions of fewer(body.actions)) yield { ...body, actions }
  for (const index of body.late.keys()) {
    yield { ...body, late: body.late.filter((_, each) => each !== index) }
  }
  for (const actions of plainer(body.actions)) yield { ...body, actions }
  if (body.entry !== 'tx.run' && body.entry !== 'guard') yield { ...body, entry: 'tx.run' }
}

function* fewer(actions: readonly Action[]): Generator<readonly Action[]> {
  for (
    let size = Math.ceil(actions.length / 2);
    size >= 1;
    size = size > 1 ? Math.ceil(size / 2) : 0
  ) {
    for (let from = 0; from < actions.length; from += size) {
      yield [...actions.slice(0, from), ...actions.slice(from + size)]
    }
  }
  for (const [index, action] of actions.entries()) {
    const put = (...instead: readonly Action[]): readonly Action[] => [
      ...actions.slice(0, index),
      ...instead,
      ...actions.slice(index + 1),
    ]
    if (action.do !== 'nested') continue
    yield put(...action.actions)
    for (const inner of fewer(action.actions)) yield put({ ...action, actions: inner })
  }
}

function* plainer(actions: readonly Action[]): Generator<readonly Action[]> {
  for (const [index, action] of actions.entries()) {
    for (const simple of plainerOnes(action)) {
      yield [...actions.slice(0, index), simple, ...actions.slice(index + 1)]
    }
  }
}

function* plainerOnes(action: Action): Generator<Action> {
  for (const mark of ['by', 'swallow', 'firstOnly'] as const) {
    if (action[mark] === undefined) continue
    const { [mark]: _, ...without } = action
    yield without as Action
  }
  if (action.do === 'disguised') yield { do: 'control', text: action.text } as Action
  if (action.do === 'control') {
    for (const text of ['COMMIT', 'ROLLBACK', 'BEGIN']) {
      if (isLonger(action.text, text)) yield { ...action, text }
    }
  }
  if (action.do === 'nested' && action.fails) yield { ...action, fails: false }
  if (action.do === 'nested') {
    for (const inner of plainer(action.actions)) yield { ...action, actions: inner }
  }
  if (action.do === 'unawaited' && action.what === 'slow insert')
    yield { ...action, what: 'insert' }
}

function isLonger(text: string, plain: string): boolean {
  return text !== plain && !['COMMIT', 'ROLLBACK', 'BEGIN'].includes(text)
}

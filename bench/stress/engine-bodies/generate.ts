import { type Random, randomFor } from '../../harness/random.ts'
import { chance, pick } from '../../harness/weighted.ts'
import { type Action, type Body, calls, type Late, ownCalls, type Vocabulary } from './model.ts'

type Kind =
  | 'plain'
  | 'savepoints'
  | 'control'
  | 'hidden'
  | 'look-alikes'
  | 'errors'
  | 'strays'
  | 'settings'
  | 'kill'
  | 'calls'

/**
 * Body number n of a seed; it depends on nothing else. Most bodies have one or two peculiarities among ordinary
 * statements: with many at once the first one decides, and the others are never seen.
 */
export function generateBody(words: Vocabulary, place: string, seed: number, number: number): Body {
  const random = randomFor(seed, number)
  const entry = pick(random, words.entries)
  const flavours: Kind[] = ['plain']
  for (let more = random.integer(0, 2); more > 0; more -= 1) {
    flavours.push(
      pick<Kind>(random, [
        [4, 'savepoints'],
        [7, 'control'],
        [4, 'hidden'],
        [1, 'look-alikes'],
        [8, 'errors'],
        [words.hasServer ? 3 : 0, 'strays'],
        [2, 'settings'],
        [words.hasServer ? 2 : 0, 'kill'],
        [4, 'calls'],
      ]),
    )
  }
  const actions = Array.from({ length: random.integer(1, 7) }, () =>
    actionOf(random, words, flavours[random.integer(0, flavours.length - 1)] as Kind, 1),
  )
  // One loss is enough: each is waited for, and each attempt after it pauses.
  const kills = actions.filter((each) => each.do === 'kill')
  for (const more of kills.slice(1)) actions[actions.indexOf(more)] = { do: 'insert' }
  // Without a write there is nothing that can be told wrongly about.
  if (!actions.some((each) => each.do === 'insert')) {
    actions.splice(random.integer(0, actions.length), 0, { do: 'insert' })
  }
  if (chance(random, 8)) actions.push({ do: 'throw' })
  const late = chance(random, 12) ? [lateOf(random)] : []
  return { place, entry, actions, late }
}

function actionOf(random: Random, words: Vocabulary, kind: Kind, depth: number): Action {
  const swallow = chance(random, 60) ? { swallow: true } : {}
  const other = chance(random, 30)
    ? { by: chance(random, 50) ? ('other' as const) : ('beneath' as const) }
    : {}
  switch (kind) {
    case 'plain':
      if (chance(random, 10)) return { do: 'root', what: chance(random, 50) ? 'read' : 'insert' }
      return { do: chance(random, 75) ? 'insert' : 'read', ...other }
    case 'savepoints': {
      if (depth < 3 && chance(random, 35)) {
        const inner: readonly Kind[] = ['plain', 'plain', 'savepoints', 'errors', 'hidden', 'calls']
        const actions = Array.from({ length: random.integer(1, 3) }, () =>
          actionOf(random, words, inner[random.integer(0, inner.length - 1)] as Kind, depth + 1),
        )
        return { do: 'nested', actions, fails: chance(random, 40), ...swallow }
      }
      const name = chance(random, 70) ? 'a' : 'b'
      return pick<Action>(random, [
        [5, { do: 'savepoint', name }],
        [3, { do: 'rollback to', name, ...swallow }],
        [2, { do: 'release', name, ...swallow }],
      ])
    }
    case 'control':
      if (chance(random, 10)) {
        return { do: 'helper', ends: chance(random, 70) ? 'COMMIT' : 'ROLLBACK', ...swallow }
      }
      if (chance(random, 14)) {
        const what = ownCalls[random.integer(0, ownCalls.length - 1)] ?? 'commit'
        return { do: 'own call', what, ...swallow }
      }
      return { do: 'control', text: pick(random, words.controls), ...swallow, ...other }
    case 'hidden':
      return { do: 'hidden', text: pick(random, words.hidden), ...swallow }
    case 'look-alikes':
      return { do: 'look-alike', text: pick(random, words.lookAlikes), ...other }
    case 'errors':
      return { do: 'error', what: pick(random, words.errors), ...swallow }
    case 'strays':
      return {
        do: 'unawaited',
        what: pick(random, [
          [5, 'insert'],
          [3, 'fail'],
          [1, 'ROLLBACK'],
          [1, 'COMMIT'],
        ] as const),
      }
    case 'settings':
      return { do: 'set', text: pick(random, words.settings), ...swallow }
    case 'kill':
      return {
        do: 'kill',
        wait: chance(random, 60),
        ...(chance(random, 70) ? { firstOnly: true } : {}),
      }
    case 'calls':
      return { do: 'call', what: calls[random.integer(0, calls.length - 1)] as never, ...swallow }
  }
}

function lateOf(random: Random): Late {
  return {
    when: pick(random, [
      [2, 'microtask'],
      [2, 'immediate'],
      [3, 'outside'],
    ] as const),
    what: pick(random, [
      [5, 'insert'],
      [2, 'insert beneath'],
      [2, 'insert prepared'],
      [1, 'acquire'],
    ] as const),
  }
}

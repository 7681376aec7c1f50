/** Answers that say no without a status that says so: by what the user has told, else by a guess that rows support. */
import type { Classify } from '../../run/answer/said.ts'
import { isPlain } from '../record/http-input.ts'
import type { Call, Send } from '../model.ts'

/** `ok=false`: answers with this value there are refusals. `error`: those that have something there. */
export interface RefusalRule {
  /** As it is told to `--refused`. */
  readonly text: string
  isRefusal(answer: unknown): boolean
}

/** @throws Error for a text without a path */
export function refusalRule(text: string): RefusalRule {
  const at = text.indexOf('=')
  const path = (at === -1 ? text : text.slice(0, at)).trim()
  if (path === '') {
    throw new Error(
      `a refusal is told as a path into the answer and a value, 'ok=false' or 'error.code=FULL', or as a path alone; ${JSON.stringify(text)} is none`,
    )
  }
  const wanted = at === -1 ? undefined : text.slice(at + 1).trim()
  return {
    text,
    isRefusal(answer) {
      const found = valueAt(answer, path)
      return wanted === undefined ? !isNothing(found) : isValue(found, wanted)
    },
  }
}

/** By any of these. */
export function anyRule(texts: readonly string[]): RefusalRule {
  const rules = texts.map((text) => refusalRule(text))
  return {
    text: texts.join(' '),
    isRefusal: (answer) => rules.some((one) => one.isRefusal(answer)),
  }
}

/** What counts as a refusal beside statuses and errors. */
export interface Refusals {
  /** For whoever looks at an end: the user's function, the user's rules, what was learned. */
  readonly classify: Classify
  /** Whether the user has left it to us what such an answer says. */
  isOpen(answer: unknown): boolean
  /** Calls of this name are held to this rule too. */
  learn(name: string, rule: RefusalRule): void
  /** Calls of this name are held to this rule while `work` runs. */
  suppose<T>(name: string, rule: RefusalRule, work: () => Promise<T>): Promise<T>
  /** The call, sent so that its answers are known as those of its name. */
  held<C extends Pick<Call, 'name' | 'send'>>(call: C): C
  /** Rules by the names of calls. */
  readonly learned: ReadonlyMap<string, RefusalRule>
  /** All that calls of this name are held to, as it is told to `--refused`. */
  textsOf(name: string): readonly string[]
}

export function createRefusals(
  outcome: Classify | undefined,
  rules: readonly RefusalRule[] = [],
): Refusals {
  const learned = new Map<string, RefusalRule>()
  /** Answers of calls that are refused by what was learned. */
  const refused = new WeakSet<object>()

  function sendHeld(name: string, send: Send): Send {
    return async (input) => {
      const answer = await send(input)
      const rule = learned.get(name)
      if (rule === undefined) return answer
      // Only an object can be known again.
      const known = typeof answer === 'object' && answer !== null ? answer : { answer }
      if (rule.isRefusal(answer)) refused.add(known)
      return known
    }
  }

  return {
    learned,
    classify(end) {
      const told = outcome?.(end)
      if (told !== undefined || 'error' in end) return told
      const { answer } = end
      const isKnown = typeof answer === 'object' && answer !== null && refused.has(answer)
      return isKnown || rules.some((rule) => rule.isRefusal(answer)) ? 'refused' : undefined
    },
    isOpen: (answer) => rules.length === 0 && outcome?.({ answer }) === undefined,
    learn: (name, rule) => void learned.set(name, rule),
    async suppose(name, rule, work) {
      const own = learned.get(name)
      learned.set(name, own ? anyRule([own.text, rule.text]) : rule)
      try {
        return await work()
      } finally {
        if (own) learned.set(name, own)
        else learned.delete(name)
      }
    },
    textsOf(name) {
      const own = learned.get(name)
      return [...rules, ...(own ? [own] : [])].map(({ text }) => text)
    },
    held: (call) => ({ ...call, send: sendHeld(call.name, call.send) }),
  }
}

/**
 * The rule by which an answer differs from all that were accepted: what was true is false, an error is there, what was
 * there is missing, a word is another one. Undefined if nothing but numbers and texts of chance differ.
 */
export function guessRefusal(
  accepted: readonly unknown[],
  answer: unknown,
): RefusalRule | undefined {
  const before = accepted.map((one) => leavesOf(one))
  const now = leavesOf(answer)
  const found: { readonly rank: number; readonly text: string }[] = []
  const all = (is: (was: unknown) => boolean, path: string): boolean =>
    before.length > 0 && before.every((leaves) => is(leaves.get(path)))
  for (const [path, value] of now) {
    if (typeof value === 'boolean' && all((was) => was === !value, path)) {
      found.push({ rank: 0, text: `${path}=${value}` })
    } else if (!isNothing(value) && all(isNothing, path)) {
      found.push({ rank: 1, text: path === root ? `${root}=${String(value)}` : path })
    } else if (value === null && all((was) => was !== null && was !== undefined, path)) {
      found.push({ rank: 2, text: `${path}=null` })
    } else if (
      isWord(value) &&
      all((was) => isWord(was) && was === before[0]?.get(path) && was !== value, path)
    ) {
      found.push({ rank: 3, text: `${path}=${value}` })
    }
  }
  for (const path of before[0]?.keys() ?? []) {
    if (!now.has(path) && all((was) => !isNothing(was), path)) {
      found.push({ rank: 2, text: `${path}=null` })
    }
  }
  return found
    .toSorted((one, other) => one.rank - other.rank)
    .map(({ text }) => refusalRule(text))
    .find((rule) => rule.isRefusal(answer) && !accepted.some((one) => rule.isRefusal(one)))
}

/** Equal for answers that say the same: their status, their fields, what is true, and `words` if these are compared. */
export function shapeOf(answer: unknown, words: 'words' | 'no words'): string {
  const leaves = [...leavesOf(answer)].map(([path, value]) => {
    const isSaying = typeof value === 'boolean' || value === null
    return `${path} ${isSaying || (words === 'words' && isWord(value)) ? String(value) : typeof value}`
  })
  return [isHttp(answer) ? answer.status : '', ...leaves.toSorted()].join('\n')
}

interface Http {
  readonly status: number
  readonly body: unknown
}

function isHttp(answer: unknown): answer is Http {
  return isPlain(answer) && 'body' in answer && 'status' in answer && Number(answer.status) > 99
}

/** Of a request its body. */
function bodyOf(answer: unknown): unknown {
  return isHttp(answer) ? answer.body : answer
}

/** The whole of it. */
const root = '.'

function valueAt(answer: unknown, path: string): unknown {
  if (path === root) return bodyOf(answer)
  let found: unknown = bodyOf(answer)
  for (const name of path.replace(/^\$?\./, '').split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined
    found = Reflect.get(found, name)
  }
  return found
}

/** How deep an answer is looked into. */
const deepest = 3

/** Fields before what is in them; lists are looked at as a whole, since they grow. */
function leavesOf(answer: unknown): ReadonlyMap<string, unknown> {
  const leaves = new Map<string, unknown>()
  const visit = (value: unknown, path: string, depth: number): void => {
    if (path !== '' || !isPlain(value) || Array.isArray(value)) leaves.set(path || root, value)
    if (!isPlain(value) || Array.isArray(value) || value instanceof Map || depth === deepest) return
    for (const [name, one] of Object.entries(value)) {
      visit(one, path === '' ? name : `${path}.${name}`, depth + 1)
    }
  }
  visit(bodyOf(answer), '', 0)
  return leaves
}

function isNothing(value: unknown): boolean {
  const isEmptyList = Array.isArray(value) && value.length === 0
  return value === undefined || value === null || value === false || value === '' || isEmptyList
}

function isValue(value: unknown, wanted: string): boolean {
  if (wanted === 'null') return value === undefined || value === null
  // As JSON writes it; a text also without quotes, and a number or a truth also as a text.
  const plain = typeof value === 'string' ? value : JSON.stringify(value)
  return plain === wanted || JSON.stringify(plain) === wanted
}

/** Neither an id nor a time. */
function isWord(value: unknown): value is string {
  return typeof value === 'string' && /^[^\d=]{1,60}$/.test(value)
}

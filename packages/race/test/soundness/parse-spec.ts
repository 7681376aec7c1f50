/** One step of a session: a name that is unique in the spec, and the SQL that is sent at once. */
export interface SpecStep {
  readonly name: string
  readonly sql: string
}

export interface SpecSession {
  readonly name: string
  /** Sent before the first step; only what touches nothing others can see: BEGIN, SET. */
  readonly setup: readonly string[]
  readonly steps: readonly SpecStep[]
}

/** A spec of PostgreSQL's isolationtester without permutations, which means: all of them. */
export interface Spec {
  readonly name: string
  /** As written, for isolationtester to read. */
  readonly text: string
  /** Run before each permutation. */
  readonly setup: readonly string[]
  /** The teardown: one SELECT that shows the final state. */
  readonly final: string
  readonly sessions: readonly SpecSession[]
}

interface Token {
  readonly kind: 'word' | 'block'
  readonly text: string
}

// As in PostgreSQL's specscanner.l: comments from # to the end of the line, names bare or in double
// quotes, SQL between braces, which cannot contain a closing brace.
const tokenPattern = /\s+|#[^\n]*|\{([^}]*)\}|"([^"]*)"|([A-Za-z_][A-Za-z0-9_-]*)|(.)/gs

function tokens(text: string): Token[] {
  return [...text.matchAll(tokenPattern)].flatMap(
    ([whole, block, quoted, word, stray]): Token[] => {
      if (stray !== undefined) throw new Error(`unexpected "${stray}" in a spec`)
      if (block !== undefined) return [{ kind: 'block', text: block.trim() }]
      if (quoted !== undefined || word !== undefined) {
        return [{ kind: 'word', text: quoted ?? word ?? whole }]
      }
      return []
    },
  )
}

const allowedInSessionSetup = /^(begin|start transaction|set)\b/i

/** Reads a spec in PostgreSQL's format. What we could not compare is refused, not ignored. */
export function parseSpec(name: string, text: string): Spec {
  const setup: string[] = []
  const sessions: { name: string; setup: string[]; steps: SpecStep[] }[] = []
  let final: string | undefined

  const rest = tokens(text)
  const next = (kind: Token['kind'], what: string): string => {
    const token = rest.shift()
    if (token?.kind !== kind) throw new Error(`${name}: ${what} expected, not "${token?.text}"`)
    return token.text
  }
  while (rest.length > 0) {
    const word = next('word', 'setup, teardown, session or step')
    const session = sessions.at(-1)
    if (word === 'session') {
      sessions.push({ name: next('word', 'a session name'), setup: [], steps: [] })
    } else if (word === 'setup' && session === undefined) {
      setup.push(next('block', 'SQL'))
    } else if (word === 'setup' && session !== undefined) {
      const statements = next('block', 'SQL')
        .split(';')
        .map((sql) => sql.trim())
      session.setup.push(...statements.filter((sql) => sql !== ''))
    } else if (word === 'teardown' && session === undefined) {
      final = next('block', 'SQL')
    } else if (word === 'step' && session !== undefined) {
      session.steps.push({ name: next('word', 'a step name'), sql: next('block', 'SQL') })
    } else {
      throw new Error(`${name}: "${word}" is not understood here`)
    }
  }

  for (const session of sessions) {
    const strange = session.setup.find((sql) => !allowedInSessionSetup.test(sql))
    if (strange !== undefined) throw new Error(`${name}: setup of a session may not "${strange}"`)
  }
  if (final === undefined || !/^select\b/i.test(final)) {
    throw new Error(`${name}: the teardown must be one SELECT, which shows the final state`)
  }
  return { name, text, setup, final, sessions }
}

/** In how many orders the steps of the sessions can be put: what isolationtester runs. */
export function countPermutations(spec: Spec): number {
  let placed = 0
  let orders = 1
  for (const { steps } of spec.sessions) {
    // Choose the places of this session's steps among all placed so far.
    for (let taken = 1; taken <= steps.length; taken += 1) {
      placed += 1
      orders = (orders * placed) / taken
    }
  }
  return orders
}

import type { Leash } from '../parts/leash.ts'

type Call = (...args: unknown[]) => unknown

/** Calls that carry SQL of the caller's, and where it is in what they are given. */
const raw: ReadonlySet<string | symbol> = new Set([
  '$queryRaw',
  '$executeRaw',
  '$queryRawUnsafe',
  '$executeRawUnsafe',
  '$queryRawTyped',
])

/**
 * Prisma's transaction client for a body: what is asked of it, and of its models, passes the leash when it is
 * sent. Prisma sends a query when somebody waits for it, not when it is made.
 */
export function leashedPrisma<Client extends object>(client: Client, leash: Leash): Client {
  const held: Client = new Proxy(client, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property)
      if (typeof value === 'function') {
        return (...args: unknown[]): unknown => {
          const text = raw.has(property) ? textOf(args) : undefined
          if (property === '$transaction') {
            return nested(leash, () =>
              (value as Call).apply(
                target,
                args.map((arg) => heldBody(arg, leash)),
              ),
            )
          }
          // A method of an extension goes on with what it is called on.
          const answer = (value as Call).apply(isOwn(property) ? target : held, args)
          if (property === '$extends') return leashedPrisma(answer as object, leash)
          return leashedAnswer(answer, leash, text)
        }
      }
      return isModel(value, property) ? leashedPrisma(value, leash) : value
    },
  })
  return held
}

/** Methods of Prisma's own, of the client and of models. */
function isOwn(property: string | symbol): boolean {
  return (
    raw.has(property) ||
    /^(?:\$(?:connect|disconnect|on|use|extends)|find|create|update|upsert|delete|count$|aggregate|groupBy$)/.test(
      String(property),
    )
  )
}

/** Unlike a query it is sent at once. */
async function nested(leash: Leash, open: () => unknown): Promise<unknown> {
  leash.assertMay(undefined)
  return await leash.during(async () => await open())
}

/** The body of a nested transaction, which is a savepoint of this one. */
function heldBody(body: unknown, leash: Leash): unknown {
  if (typeof body !== 'function') return body
  return (inner: object) => (body as Call)(leashedPrisma(inner, leash))
}

/** Models are objects under plain names; everything of Prisma's own begins with `$` or `_`. */
function isModel(value: unknown, property: string | symbol): value is object {
  return typeof value === 'object' && value !== null && /^[a-z]/i.test(String(property))
}

/** A text, a template with values, or an object with `sql` that Prisma.sql and typed SQL are. */
function textOf([query, ...values]: readonly unknown[]): string | undefined {
  if (typeof query === 'string') return query
  if (!Array.isArray(query)) return sqlOf(query)
  // What stands between the pieces may be SQL as well: Prisma.raw, Prisma.join.
  const pieces = query as readonly string[]
  let text = pieces[0] ?? ''
  for (let at = 1; at < pieces.length; at += 1)
    text += `${sqlOf(values[at - 1]) ?? ' ? '}${pieces[at]}`
  return text
}

function sqlOf(part: unknown): string | undefined {
  const { sql } = (part ?? {}) as { readonly sql?: unknown }
  return typeof sql === 'string' ? sql : undefined
}

const waits: ReadonlySet<string | symbol> = new Set(['then', 'catch', 'finally'])

/** What a call gave; if it is a query, it is sent as soon as one of these is called. */
function leashedAnswer(answer: unknown, leash: Leash, text: string | undefined): unknown {
  if (typeof (answer as PromiseLike<unknown> | undefined)?.then !== 'function') return answer
  let sent = false
  const send = (): void => {
    if (sent) return
    leash.assertMay(text)
    sent = true
    void leash.during(() => (answer as Promise<unknown>).then(ignored, ignored))
  }
  return new Proxy(answer as object, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property)
      if (typeof value !== 'function') return value
      if (!waits.has(property)) {
        // A relation of what was asked for: another query, sent in its place.
        return (...args: unknown[]) =>
          leashedAnswer((value as Call).apply(target, args), leash, text)
      }
      return (...args: unknown[]): unknown => {
        try {
          send()
        } catch (error) {
          return (Promise.reject(error as Error) as unknown as Record<string | symbol, Call>)[
            property
          ]?.(...args)
        }
        return (value as Call).apply(target, args)
      }
    },
  })
}

function ignored(): void {}

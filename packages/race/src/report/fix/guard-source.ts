/** `prisma.$transaction(async (tx) => { … })` becomes `hf.guard(lockKey(…), async (tx) => { … })`, with what it imports. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { GuardEdit } from './guard-edit.ts'
import { type Change, closingOf, lineAt } from './source-edit.ts'

/** How far above the transaction the head of its function may be. */
const headLines = 12

/** Undefined where the transaction, Holdfast over the same client, or the variable of the key is not found. */
export function guardChanges(source: string, edit: GuardEdit): readonly Change[] | undefined {
  const opened = transactionAround(source, edit)
  if (opened === undefined) return undefined
  const { index, length, client, open, body, parameter } = opened
  const head = source.slice(0, index).split('\n').slice(-headLines).join('\n')
  const named = new RegExp(String.raw`(?<![\w.'"])${edit.part}\b`)
  if (edit.part !== `'all'` && !(named.test(head) && named.test(body))) return undefined
  const holdfast = holdfastBeside(source, edit.file, client)
  if (holdfast === undefined) return undefined
  const key = `lockKey('${edit.name}', ${edit.part})`
  return [
    ...importOfLockKey(source),
    ...holdfast.changes,
    {
      index,
      removed: length,
      added: `${holdfast.name}.guard(${key}, async (${parameter}) => ${open}`,
    },
  ]
}

interface Opened {
  readonly index: number
  readonly length: number
  readonly client: string
  readonly parameter: string
  readonly open: string
  readonly body: string
}

/** The innermost one that has both lines in it, and no settings of its own. */
function transactionAround(source: string, { from, to }: GuardEdit): Opened | undefined {
  const opening = /\b(\w+)\.\$?transaction\(async \((\w+)\) => (\{)/g
  const around = [...source.matchAll(opening)].flatMap((found): Opened[] => {
    const { index } = found
    const [whole, client = '', parameter = '', open = ''] = found
    const end = closingOf(source, index + whole.length)
    if (end === undefined || !/^\s*,?\s*\)/.test(source.slice(end))) return []
    if (lineAt(source, index) > from || lineAt(source, end) < to) return []
    const body = source.slice(index + whole.length, end)
    return [{ index, length: whole.length, client, parameter, open, body }]
  })
  return around.at(-1)
}

interface Beside {
  readonly name: string
  readonly changes: readonly Change[]
}

const made = String.raw`const (\w+)(?::[^=]+)? = createHoldfast\(`
const imports = /import \{([^}]*)\} from (['"])([^'"]+)\2/g

/** Holdfast where the client is from: in this file, or in the module that it is imported from. */
function holdfastBeside(source: string, file: string, client: string): Beside | undefined {
  const own = new RegExp(made).exec(source)?.[1]
  if (own !== undefined) return { name: own, changes: [] }
  for (const found of source.matchAll(imports)) {
    const [whole, list = '', , path = ''] = found
    const names = list.split(',').map((one) => one.trim())
    if (!path.startsWith('.') || !names.includes(client)) continue
    const name = new RegExp(`export ${made}`).exec(textOf(join(dirname(file), path)))?.[1]
    if (name === undefined) continue
    if (names.includes(name)) return { name, changes: [] }
    const at = found.index + firstName(whole)
    const isUnused = source.match(new RegExp(String.raw`\b${client}\b`, 'g'))?.length === 2
    if (!isUnused) return { name, changes: [{ index: at, removed: 0, added: `${name}, ` }] }
    const place = found.index + whole.search(new RegExp(String.raw`\b${client}\b`))
    return { name, changes: [{ index: place, removed: client.length, added: name }] }
  }
  return undefined
}

/** Where the list of an import begins. */
function firstName(text: string): number {
  const open = text.indexOf('{') + 1
  return open + text.slice(open).search(/\S/)
}

function importOfLockKey(source: string): readonly Change[] {
  for (const found of source.matchAll(imports)) {
    const [whole, list = '', , path] = found
    if (path !== 'holdfast') continue
    if (/\blockKey\b/.test(list)) return []
    const at = found.index + firstName(whole)
    return [{ index: at, removed: 0, added: 'lockKey, ' }]
  }
  const first = /^import .* from (['"])/m.exec(source)
  const quote = first?.[1] ?? `'`
  const index = first?.index ?? 0
  return [{ index, removed: 0, added: `import { lockKey } from ${quote}holdfast${quote}\n` }]
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** The fix as a diff of the code, where the line of the statement is known and its text is found there. */
import { readFileSync } from 'node:fs'
import type { Fix } from './fix.ts'
import { guardChanges } from './guard-source.ts'
import { statementChange } from './source-edit.ts'
import { unified } from './unified.ts'
import { fileText } from '../words.ts'

/** A fix, and what it changes. */
export interface Patch {
  /** In words; what the code has to do with the answer is part of it. */
  readonly text: string
  /** A unified diff, for `git apply`. */
  readonly diff: string
}

/** The first way out that is a change of the code which is found there; undefined where none is. */
export function patchOf(fixes: readonly Fix[], root?: string): Patch | undefined {
  for (const { edit, text } of fixes) {
    if (edit === undefined) continue
    const diff = diffOf(edit, root)
    if (diff === undefined) continue
    const told = 'told' in edit ? edit.told : undefined
    return { text: told === undefined ? text : `${text} ${told}`, diff }
  }
  return undefined
}

function diffOf(edit: NonNullable<Fix['edit']>, root: string | undefined): string | undefined {
  const file = 'place' in edit ? edit.place.file : edit.file
  let source: string
  try {
    source = readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
  const change = 'place' in edit ? statementChange(source, edit) : undefined
  const changes = 'place' in edit ? change && [change] : guardChanges(source, edit)
  if (changes === undefined) return undefined
  return unified(fileText(file, root).replaceAll('\\', '/'), source, changes)
}

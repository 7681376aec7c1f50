import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import type { Command } from '../command.ts'
import { done, Failed } from '../failure.ts'

/** Where Claude Code and others look for what a project teaches them. */
const usualFolder = '.claude/skills/holdfast'

export const skill: Command = {
  name: 'skill',
  about: 'Copy what teaches a coding agent to find races and to fix them, into this project',
  needsDatabase: false,
  readsSettings: false,
  args: [
    { name: 'verb', words: ['add'], about: 'Copy it' },
    { name: 'folder', about: `Where to; default: ${usualFolder}`, optional: true },
  ],
  flags: {
    overwrite: {
      type: 'boolean',
      about: 'Replace files that differ, such as those of an older version',
    },
  },
  async run({ args, flags, around, print }) {
    const folder = args['folder'] ?? usualFolder
    const source = join(
      dirname(createRequire(import.meta.url).resolve('holdfast/package.json')),
      'skills/holdfast',
    )
    const files = filesIn(source).map((path) => {
      const place = resolve(around.folder, folder, path)
      const text = readFileSync(join(source, path), 'utf8')
      const state = !existsSync(place)
        ? 'new'
        : readFileSync(place, 'utf8') === text
          ? 'same'
          : 'changed'
      return { path, place, text, state }
    })
    const changed = files.filter(({ state }) => state === 'changed')
    if (changed.length > 0 && flags['overwrite'] !== true) {
      throw new Failed({
        code: 'FILE_EXISTS',
        message: `Nothing was written: ${changed.map(({ path }) => path).join(', ')} in ${folder} differs from what would be.`,
        next: 'Run it with --overwrite to replace what differs, or name another folder.',
      })
    }
    const written = files.filter(({ state }) => state !== 'same')
    for (const { place, text } of written) {
      mkdirSync(dirname(place), { recursive: true })
      writeFileSync(place, text)
    }
    const told =
      written.length === 0
        ? `${folder} is up to date already.`
        : `Wrote ${written.length} of ${files.length} files into ${folder}.`
    print({ folder, written: written.map(({ path }) => path) }, `${told}\n`)
    return done
  },
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .toSorted()
}

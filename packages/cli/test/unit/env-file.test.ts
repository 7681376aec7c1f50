import { chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readEnvFile } from '../../src/settings/env-file.ts'
import { runCommand } from '../support/run-command.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-env-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** A project with a folder in it, and a .env wherever it is wanted. */
function project(name: string, envAt: string): string {
  const deep = join(folder, name, 'own', 'deep')
  mkdirSync(deep, { recursive: true })
  writeFileSync(join(folder, name, 'own', 'package.json'), '{}')
  writeFileSync(join(folder, name, envAt, '.env'), 'DATABASE_URL=mysql://u:s3cret@h/d\n')
  return deep
}

describe('.env', () => {
  test('is read from the project, and not from above it', () => {
    const found = 'mysql://u:s3cret@h/d'
    expect(readEnvFile(project('here', 'own/deep')).variables['DATABASE_URL']).toBe(found)
    expect(readEnvFile(project('up', 'own')).variables['DATABASE_URL']).toBe(found)
    expect(readEnvFile(project('above', '.'))).toEqual({ variables: {} })
  })

  // To give a file away one has to be root.
  test.runIf(process.geteuid?.() === 0)(
    'of another user is not read, and that is told',
    async () => {
      const deep = project('foreign', 'own')
      chownSync(join(folder, 'foreign/own/.env'), 65_534, 65_534)
      expect(readEnvFile(deep)).toEqual({
        variables: {},
        unread: expect.stringContaining('belongs to another user'),
      })
      const { code, err } = await runCommand(['locks', '--json'], {}, deep)
      expect([code, JSON.parse(err)]).toMatchObject([
        2,
        { error: { code: 'USAGE', message: expect.stringContaining('belongs to another user') } },
      ])
      expect(err).not.toContain('s3cret')
    },
  )
})

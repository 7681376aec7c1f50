import { execFileSync } from 'node:child_process'
import { resolve } from 'node:path'

/** Files that differ from a commit, and those that git does not know yet. @throws Error if git cannot tell */
export function changedFiles(since: string, folder: string = process.cwd()): ReadonlySet<string> {
  const git = (...args: string[]): string => {
    try {
      return execFileSync('git', args, {
        cwd: folder,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      })
    } catch (error) {
      const { stderr = '' } = error as { readonly stderr?: string }
      const [reason = ''] = stderr.trim().split('\n')
      throw new Error(`--since: git cannot tell what has changed since ${since}: ${reason}`, {
        cause: error,
      })
    }
  }
  const root = git('rev-parse', '--show-toplevel').trimEnd()
  const listed = [
    git('diff', '--name-only', '-z', '--end-of-options', since, '--'),
    git('ls-files', '--others', '--exclude-standard', '--full-name', '-z', root),
  ]
  return new Set(
    listed.flatMap((text) =>
      text
        .split('\0')
        .filter((name) => name !== '')
        .map((name) => resolve(root, name)),
    ),
  )
}

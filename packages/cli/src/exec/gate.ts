/**
 * What the guardian starts, and what becomes the command: in the same process, once the holder knows of it. A shell could
 * wait as well, but it leaves out variables whose names it cannot hold (`spring.datasource.url`), and changes others
 * (`PWD`, `SHLVL`). A program, started by guardian.ts.
 */
import { closeSync, existsSync, readSync, writeSync } from 'node:fs'
import { gateLine, gateNames } from './gate-words.ts'

const command = process.argv.slice(2)

/** Finds the command as shells do, and gives 127 or 126 as they do. */
const programs = ['/usr/bin/env', '/bin/env']

/** What `env` would take for a variable or an option of its own is started by a shell. */
function argsOf([name = '', ...rest]: readonly string[]): string[] {
  const isOwn = name === '-' || name.includes('=')
  return [...(isOwn ? ['/bin/sh', '-c', 'exec "$@"', 'sh'] : []), name, ...rest]
}

/** Blocks: nothing else has to be done here. The end of the line is that of the guardian, too. */
function readLine(): string {
  const bytes = Buffer.alloc(16)
  let text = ''
  while (!text.endsWith('\n')) {
    const count = readSync(gateLine, bytes)
    if (count === 0) return text
    text += bytes.toString('latin1', 0, count)
  }
  return text
}

writeSync(gateLine, 'ready\n')
if (readLine() !== 'go\n') process.exit(1)
closeSync(gateLine)
// Node ignores these, and what is ignored stays so in what we become; with the last listener goes that, too.
const heard = (): void => undefined
for (const signal of ['SIGPIPE', 'SIGXFSZ'] as const) process.on(signal, heard).off(signal, heard)
const program = programs.find((each) => existsSync(each))
if (program === undefined || process.execve === undefined) process.exit(126)
process.execve(program, ['env', '--', ...argsOf(command)], gateNames.restored(process.env))

import { spawn } from 'node:child_process'
import { once } from 'node:events'

const programs: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['explorer.exe'],
}

/** Opens a file with the program that the desktop has for it; false if there is none. */
export async function openFile(path: string): Promise<boolean> {
  const [program, ...args] = programs[process.platform] ?? ['xdg-open']
  if (program === undefined) return false
  const child = spawn(program, [...args, path], { detached: true, stdio: 'ignore' })
  try {
    await once(child, 'spawn')
  } catch {
    return false
  }
  child.unref()
  return true
}

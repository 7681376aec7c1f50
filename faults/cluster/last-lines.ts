import { readFile } from 'node:fs/promises'

const lines = 150

/** The ends of log files, for the report of an episode that went wrong. */
export async function lastLines(files: Readonly<Record<string, string>>): Promise<string> {
  const parts = await Promise.all(
    Object.entries(files).map(async ([name, file]) => {
      const text = await readFile(file, 'utf8').catch((error: Error) => error.message)
      return `== ${name}\n${text.split('\n').slice(-lines).join('\n')}`
    }),
  )
  return parts.join('\n')
}

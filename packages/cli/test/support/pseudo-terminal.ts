import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { waitUntil } from '@holdfast/testkit'

const script = fileURLToPath(new URL('pseudo-terminal.py', import.meta.url))

/** How a command ended, and in which state it left the terminal. */
export interface Ended {
  /** Negative: the signal that killed it. */
  readonly code: number
  /** It read key by key for a while. */
  readonly rawSeen: boolean
  readonly echo: boolean
  readonly canonical: boolean
}

/** A command in a real terminal, of which a program is the person. */
export class PseudoTerminal implements AsyncDisposable {
  readonly ended: Promise<Ended>
  /** Everything it has printed. */
  output = ''
  readonly #process: ChildProcess

  constructor(
    command: readonly string[],
    environment: Readonly<Record<string, string | undefined>>,
    size: readonly [columns: number, rows: number] = [120, 30],
  ) {
    const [columns, rows] = size
    this.#process = spawn('python3', [script, String(columns), String(rows), ...command], {
      env: environment,
      stdio: 'pipe',
    })
    this.#process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.output += text
    })
    let said = ''
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    this.ended = new Promise((resolve, reject) => {
      this.#process.once('error', reject)
      this.#process.once('close', () => {
        try {
          resolve(JSON.parse(said) as Ended)
        } catch {
          reject(new Error(`the terminal said: ${said}`))
        }
      })
    })
    this.ended.catch(() => undefined)
  }

  press(keys: string): void {
    this.#order({ keys })
  }

  resize(columns: number, rows: number): void {
    this.#order({ size: [columns, rows] })
  }

  signal(signal: string): void {
    this.#order({ signal })
  }

  /** The lines of the latest frame that was drawn as a whole. */
  screen(): string[] {
    const frames = this.output.split('\u001B[?2026h').slice(1)
    const whole = frames.findLast((frame) => frame.includes('\u001B[?2026l'))
    if (whole === undefined) return []
    const [frame = ''] = whole.split('\u001B[?2026l')
    return stripVTControlCharacters(frame).split(/\r+\n/)
  }

  async until(what: string, isSo: (screen: string[]) => boolean): Promise<void> {
    await waitUntil(what, () => isSo(this.screen()) || undefined).catch((error: unknown) => {
      throw new Error(
        `${String(error)}\nlast seen:\n${this.screen().join('\n')}\n${JSON.stringify(this.output.slice(-2_000))}`,
      )
    })
  }

  #order(order: object): void {
    this.#process.stdin?.write(`${JSON.stringify(order)}\n`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.stdin?.end()
    await this.ended.catch(() => undefined)
  }
}

import { setTimeout as pause } from 'node:timers/promises'
import { settings } from './settings.ts'

export interface ModelAnswer {
  readonly text: string
  readonly cost: number
}

/** Stands for a language model: slow, and only afterwards does it say what it cost. */
export async function think(prompt: string, signal?: AbortSignal): Promise<ModelAnswer> {
  await pause(settings.modelMs, undefined, { signal })
  return { text: `${prompt.length} letters, all of them fine.`, cost: 20 + (prompt.length % 10) }
}

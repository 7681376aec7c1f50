import { buildUi } from '../../scripts/build-ui.ts'

/** Vitest's global setup: what is looked at is what the sources say now. */
export async function setup(): Promise<void> {
  await buildUi()
}

import { notGiven } from '../../core/options/given.ts'

/** Where statements of ours may be prepared. */
export type PrepareMode = 'auto' | 'never' | 'tracked'

/** @throws OPTION_INVALID */
export function assertPrepare(prepare: unknown, modes: readonly PrepareMode[]): void {
  if (prepare !== undefined && !(modes as readonly unknown[]).includes(prepare))
    throw notGiven('prepare', modes.map((mode) => `'${mode}'`).join(' or '))
}

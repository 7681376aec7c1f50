import { notGiven } from '../../core/options/given.ts'

/** Whether statements of ours may be prepared. @throws OPTION_INVALID */
export function assertPrepare(prepare: unknown): void {
  if (prepare !== undefined && prepare !== 'auto' && prepare !== 'never')
    throw notGiven('prepare', "'auto' or 'never'")
}

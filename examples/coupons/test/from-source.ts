/** Lets processes of a test import `holdfast` from its sources, whether it is built or not. */
export const fromSource: string = new URL(
  '../../../packages/holdfast/test/support/from-source.ts',
  import.meta.url,
).href
